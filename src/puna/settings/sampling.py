"""Options that change what a request gets when it does not say."""

from __future__ import annotations

from puna.settings.option import Option
from puna.settings.table import SAMPLING
from puna.settings.values import Integer, Kind, Number, Switch


def _default(flags: str, kind: Kind, field: str, text: str, variable: str = "") -> Option:
    return Option(
        flags=tuple(flags.split()),
        kind=kind,
        target=f"sampling.{field}",
        variables=(variable,) if variable else (),
        group=SAMPLING,
        help=text,
    )


SAMPLING_OPTIONS = (
    Option(
        flags=("--predict", "-n", "--n-predict"),
        kind=Integer(-1),
        target="server.n_predict",
        variables=("LLAMA_ARG_N_PREDICT",),
        group=SAMPLING,
        help="most tokens of an answer; -1: until it ends or the context is full",
    ),
    Option(
        flags=("--context-shift",),
        off_flags=("--no-context-shift",),
        kind=Switch(),
        target="server.context_shift",
        variables=("LLAMA_ARG_CONTEXT_SHIFT",),
        group=SAMPLING,
        help="let an answer that fills the context go on without the oldest part of what came before",
    ),
    Option(
        flags=("--keep",),
        kind=Integer(-1),
        target="server.n_keep",
        group=SAMPLING,
        help="tokens of the prompt that a context shift leaves alone; -1: all of them",
    ),
    Option(
        flags=("--cache-prompt",),
        off_flags=("--no-cache-prompt",),
        kind=Switch(),
        target="server.cache_prompt",
        variables=("LLAMA_ARG_CACHE_PROMPT",),
        group=SAMPLING,
        help="use known beginnings of prompts again, where a request does not say",
    ),
    Option(
        flags=("--cache-reuse",),
        kind=Integer(0),
        target="server.cache_reuse",
        variables=("LLAMA_ARG_CACHE_REUSE",),
        group=SAMPLING,
        help="fewest tokens of a run that is taken from another place in a known prompt; 0: beginnings only",
    ),
    _default("--temp --temperature", Number(-1, 100), "temperature", "0 or less is greedy", "LLAMA_ARG_TEMPERATURE"),
    _default("--top-k", Integer(0), "top_k", "keep the K most likely tokens; 0: off", "LLAMA_ARG_TOP_K"),
    _default("--top-p", Number(0, 1), "top_p", "keep tokens up to this share of probability; 1: off", "LLAMA_ARG_TOP_P"),
    _default("--min-p", Number(0, 1), "min_p", "drop tokens less likely than this share of the best; 0: off", "LLAMA_ARG_MIN_P"),
    _default("--typical-p --typical", Number(0, 1), "typical_p", "locally typical sampling; 1: off"),
    _default("--top-n-sigma --top-nsigma", Number(-1), "top_n_sigma", "keep tokens within so many deviations; -1: off"),
    _default("--xtc-probability", Number(0, 1), "xtc_probability", "how often top choices are excluded; 0: never"),
    _default("--xtc-threshold", Number(0, 1), "xtc_threshold", "how likely a top choice is; above 0.5: off"),
    _default("--seed -s", Integer(-1, 2**32 - 1), "seed", "random seed; -1: a new one each time"),
    _default("--repeat-last-n", Integer(-1), "repeat_last_n", "tokens that the penalties look at; -1: the whole context"),
    _default("--repeat-penalty", Number(0.01, 100), "repeat_penalty", "1: off", "LLAMA_ARG_REPEAT_PENALTY"),
    _default("--presence-penalty", Number(-100, 100), "presence_penalty", "0: off", "LLAMA_ARG_PRESENCE_PENALTY"),
    _default("--frequency-penalty", Number(-100, 100), "frequency_penalty", "0: off", "LLAMA_ARG_FREQUENCY_PENALTY"),
    _default("--dry-multiplier", Number(0, 100), "dry_multiplier", "strength of the DRY penalty; 0: off"),
    _default("--dry-base", Number(1, 100), "dry_base", "base of the DRY penalty"),
    _default("--dry-allowed-length", Integer(0), "dry_allowed_length", "longest repetition that DRY lets pass"),
    _default("--dry-penalty-last-n", Integer(-1), "dry_penalty_last_n", "tokens that DRY looks at; -1: the whole context"),
    _default("--dynatemp-range", Number(0, 100), "dynatemp_range", "range of the dynamic temperature; 0: off"),
    _default("--dynatemp-exp", Number(0, 100), "dynatemp_exponent", "exponent of the dynamic temperature"),
    _default("--adaptive-target", Number(-1, 1), "adaptive_target", "probability that adaptive-p aims at; below 0: off"),
    _default("--adaptive-decay", Number(0, 0.99), "adaptive_decay", "how slowly adaptive-p forgets"),
    _default("--mirostat", Integer(0, 2), "mirostat", "0: off, 1 or 2: the version"),
    _default("--mirostat-lr", Number(0, 100), "mirostat_eta", "Mirostat's learning rate"),
    _default("--mirostat-ent", Number(0, 100), "mirostat_tau", "Mirostat's target entropy"),
)
