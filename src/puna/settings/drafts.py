"""Options of drafts."""

from __future__ import annotations

from dataclasses import dataclass

from puna.settings.option import Option
from puna.settings.values import Integer, Number, Switch, Text, choice
from puna.speculation import parse_type

DRAFTS = "Drafts"
THREADS = Integer(-1, 1024, words={"auto": 0, "-1": 0})
CACHE_TYPES = choice("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")


@dataclass(frozen=True)
class DraftKind:
    """One kind of draft, or several between commas."""

    metavar: str = "TYPE"

    def parse(self, text: str) -> str:
        return parse_type(text.strip().lower())


DRAFT_OPTIONS = (
    Option(
        flags=("--model-draft", "-md", "--spec-draft-model"),
        kind=Text("FILE"),
        target="engine.draft_model",
        variables=("LLAMA_ARG_SPEC_DRAFT_MODEL", "LLAMA_ARG_MODEL_DRAFT"),
        group=DRAFTS,
        help="the GGUF file of a smaller model with the same vocabulary, which guesses tokens ahead; without --spec-type it "
        "does so for every request",
    ),
    Option(
        flags=("--ctx-size-draft", "-cd"),
        kind=Integer(0),
        target="engine.draft_n_ctx",
        variables=("LLAMA_ARG_CTX_SIZE_DRAFT",),
        group=DRAFTS,
        help="tokens of the longest request that the draft model guesses for; 0: as long as a request may be",
    ),
    Option(
        flags=("--threads-draft", "-td", "--spec-draft-threads"),
        kind=THREADS,
        target="engine.draft_n_threads",
        group=DRAFTS,
        help="threads with which the draft model guesses; 0: as many as --threads",
    ),
    Option(
        flags=("--threads-batch-draft", "-tbd", "--spec-draft-threads-batch"),
        kind=THREADS,
        target="engine.draft_n_threads_batch",
        group=DRAFTS,
        help="threads with which it reads; 0: as many as --threads-draft, or else --threads-batch",
    ),
    Option(
        flags=("--gpu-layers-draft", "-ngld", "--n-gpu-layers-draft", "--spec-draft-ngl"),
        kind=Integer(-2, words={"auto": -1, "all": -1}),
        target="engine.draft_n_gpu_layers",
        variables=("LLAMA_ARG_N_GPU_LAYERS_DRAFT",),
        group=DRAFTS,
        help="its layers on an accelerator, where the engine was built for one; -1: all",
    ),
    Option(
        flags=("--cache-type-k-draft", "-ctkd", "--spec-draft-type-k"),
        kind=CACHE_TYPES,
        target="engine.draft_cache_type_k",
        variables=("LLAMA_ARG_SPEC_DRAFT_CACHE_TYPE_K", "LLAMA_ARG_CACHE_TYPE_K_DRAFT"),
        group=DRAFTS,
        help="number format of its cached keys",
    ),
    Option(
        flags=("--cache-type-v-draft", "-ctvd", "--spec-draft-type-v"),
        kind=CACHE_TYPES,
        target="engine.draft_cache_type_v",
        variables=("LLAMA_ARG_SPEC_DRAFT_CACHE_TYPE_V", "LLAMA_ARG_CACHE_TYPE_V_DRAFT"),
        group=DRAFTS,
        help="number format of its cached values",
    ),
    Option(
        flags=("--spec-type",),
        kind=DraftKind(),
        target="server.spec_type",
        variables=("LLAMA_ARG_SPEC_TYPE",),
        group=DRAFTS,
        help="guess tokens ahead and verify several in one step: from the text so far, searched (ngram-simple) or indexed "
        "(ngram-map), from other requests too (ngram-cache), by the draft model (draft), by text or model, whichever is better "
        "(auto), or not at all (none)",
    ),
    Option(
        flags=("--spec-default",),
        kind=Switch(),
        target="load.spec_default",
        also={True: {"server.spec_type": "ngram-cache"}},
        group=DRAFTS,
        help="the same as --spec-type ngram-cache",
    ),
    Option(
        flags=("--draft-max", "--spec-draft-n-max", "--draft", "--draft-n"),
        kind=Integer(0, 1024),
        target="server.draft_max",
        variables=("LLAMA_ARG_SPEC_DRAFT_N_MAX", "LLAMA_ARG_DRAFT_MAX"),
        group=DRAFTS,
        help="most tokens of a draft; 0: no drafts",
    ),
    Option(
        flags=("--draft-min", "--spec-draft-n-min", "--draft-n-min"),
        kind=Integer(0, 1024),
        target="server.draft_min",
        variables=("LLAMA_ARG_SPEC_DRAFT_N_MIN", "LLAMA_ARG_DRAFT_MIN"),
        group=DRAFTS,
        help="drafts of fewer tokens are not used",
    ),
    Option(
        flags=("--draft-p-min", "--spec-draft-p-min"),
        kind=Number(0, 1),
        target="server.draft_p_min",
        variables=("LLAMA_ARG_SPEC_DRAFT_P_MIN", "LLAMA_ARG_DRAFT_P_MIN"),
        group=DRAFTS,
        help="least chance, as far as can be told, that a drafted token is right",
    ),
    Option(
        flags=("--draft-adaptive",),
        off_flags=("--no-draft-adaptive",),
        kind=Switch(),
        target="engine.draft_adaptive",
        group=DRAFTS,
        help="make drafts only as long as they pay, by what was right before and what steps take; off: as long as they may be",
    ),
)
