"""Neutral, frozen values: what every layer may speak about.

No wire format and no engine detail shows here. Dialects decode into these and encode from them; the engine's frames
carry them as they are.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from puna.counters import EngineStats as EngineStats
from puna.media import MEDIA as MEDIA
from puna.media import Media as Media
from puna.media import MediaFacts as MediaFacts
from puna.pooling import PoolingFacts
from puna.speculation import Speculation
from puna.tuning import Tuning

StopType = Literal["none", "eos", "word", "limit"]
"""Why a generation ended: not yet, end-of-generation token, stop string, or a limit."""

DEFAULT_SAMPLERS = ("penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature")
"""Names of the sampler chain's members, in the order they are applied."""

DEFAULT_BREAKERS = ("\n", ":", '"', "*")


class Sampling(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the next token is chosen. Names and defaults are llama.cpp's."""

    temperature: float = 0.8
    """At most 0 means greedy."""
    dynatemp_range: float = 0.0
    dynatemp_exponent: float = 1.0
    top_k: int = 40
    """0 is off."""
    top_p: float = 0.95
    """1 is off."""
    min_p: float = 0.05
    """0 is off."""
    typical_p: float = 1.0
    """1 is off."""
    top_n_sigma: float = -1.0
    """Below 0 is off."""
    xtc_probability: float = 0.0
    xtc_threshold: float = 0.1
    repeat_last_n: int = 64
    """How many of the last tokens the penalties see; -1 is the context size, 0 is off."""
    repeat_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    dry_multiplier: float = 0.0
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_penalty_last_n: int = -1
    dry_sequence_breakers: tuple[str, ...] = DEFAULT_BREAKERS
    mirostat: int = 0
    mirostat_tau: float = 5.0
    mirostat_eta: float = 0.1
    adaptive_target: float = -1.0
    """Below 0 is off."""
    adaptive_decay: float = 0.9
    samplers: tuple[str, ...] = DEFAULT_SAMPLERS
    seed: int = 0
    """Always a real seed, 0 to 2**32 - 1: whoever builds this has resolved -1 to a random one."""
    logit_bias: tuple[tuple[int, float], ...] = ()
    """(token id, bias) pairs; minus infinity bans a token."""
    ignore_eos: bool = False
    min_tokens: int = 0
    """No end-of-generation token before this many tokens were produced."""
    min_keep: int = 0
    n_probs: int = 0
    """How many alternatives to report for each token."""
    post_sampling_probs: bool = False
    """Report probabilities after the chain instead of log-probabilities before it."""


class Span(msgspec.Struct, frozen=True):
    """Stretches of the output between two texts, such as a model's thoughts. One that does not end goes on to the end."""

    begin: str
    end: str
    open: bool = False
    """Whether the output begins inside one."""
    again: bool = False
    """Whether there may be several. If not, `begin` counts as the first thing of the output only, blanks aside."""


class Trigger(msgspec.Struct, frozen=True):
    """Something in the output at which a constraint begins; it and all that follows are constrained."""

    kind: Literal["token", "word", "pattern", "pattern_full"]
    value: str
    """The word, or the regular expression: one to be found anywhere, or one (`pattern_full`) for the whole text so far. The
    constraint begins at its first group that matched, or with the match. Of a token its text, for display."""
    token: int = -1
    """The token's id."""
    outside: Span | None = None
    """Where it does not count. A pattern's beginning of the text is the beginning of what is left."""


class Constraint(msgspec.Struct, frozen=True):
    """A language that the output must belong to."""

    kind: Literal["gbnf", "json_schema", "regex", "lark", "choice", "outline"]
    source: str
    """The grammar; the schema, the list of texts to choose from, or the `puna.outline.Outline`, as JSON text."""
    strict: bool = False
    """Whether a keyword of a schema that cannot be enforced is an error instead of a warning."""
    compiled: str = ""
    """The same for the constraint engine; empty until it was prepared."""
    warnings: tuple[str, ...] = ()
    """What is not enforced, in words."""
    triggers: tuple[Trigger, ...] = ()
    """Where the output begins to be constrained; without any, at its beginning."""


class Thinking(msgspec.Struct, frozen=True, kw_only=True):
    """How an answer's thinking is told from the rest of it, and what ends it before its time."""

    begin: str
    """The text that begins it; empty for thinking that is only ever open from the start."""
    end: str
    """The text that ends it."""
    open: bool = False
    """Whether the answer begins inside it."""
    budget: int = -1
    """Most tokens of thinking in the whole answer, after which it is ended; -1 for no limit."""
    close: tuple[int, ...]
    """Tokens that end it."""
    message: tuple[int, ...] = ()
    """Tokens that come before those where thinking is cut short."""


class Generation(msgspec.Struct, frozen=True, kw_only=True):
    """One sequence to generate: what the service asks of a worker's client."""

    prompt: tuple[int, ...]
    """Token ids, at least one, and `MEDIA` where a picture or a sound stands."""
    media: tuple[Media, ...] = ()
    """What stands there, in order."""
    sampling: Sampling = Sampling()
    max_tokens: int = -1
    """-1 until the end of the context; 0 evaluates the prompt into the cache and produces nothing."""
    stop: tuple[str, ...] = ()
    """Non-empty stop strings; the text is cut just before the first full match."""
    constraint: Constraint | None = None
    preserved_tokens: tuple[int, ...] = ()
    """Control tokens that are shown as text in the output."""
    lora: tuple[tuple[int, float], ...] = ()
    """(adapter id, scale) pairs of the adapters that take part, by id; any other one does not."""
    thinking: Thinking | None = None
    """None where nothing is to end it."""
    cache_prompt: bool = True
    """Whether this prompt may use, and is left in, the prompt cache."""
    n_cache_reuse: int = 0
    """Fewest tokens of a run that is moved here from another place in a known prompt; 0 for moving nothing."""
    id_slot: int = -1
    """The slot the caller would like, -1 for any."""
    want_progress: bool = False
    """Whether prefill progress is reported."""
    prompt_probs: bool = False
    """Whether the prompt's own probabilities are reported, `n_probs` alternatives each; the prompt is then read whole."""
    context_shift: bool = False
    """Whether a full context drops its oldest part and goes on, instead of ending the answer."""
    n_keep: int = 0
    """Prompt tokens that a shift leaves alone; -1 for all of them."""
    n_discard: int = 0
    """Tokens that a shift drops; 0 for half of those it may."""
    speculation: Speculation = Speculation()
    deterministic: bool = False
    """Compute with shapes that depend on this request alone, whatever else runs or is cached."""
    n_indent: int = 0
    """Blanks that every line after the first must begin with; the text is cut where one begins with fewer. 0 is off."""
    t_max_predict_ms: int = 0
    """Milliseconds after the first token from which a line's end is the answer's end too; 0 is off."""


class FimTokens(msgspec.Struct, frozen=True, kw_only=True):
    """Token ids that lay out a text with a gap in it; -1 for those that a vocabulary does not have."""

    prefix: int = -1
    """Before the text that precedes the gap."""
    suffix: int = -1
    """Before the text that follows it."""
    middle: int = -1
    """Before what fills it."""
    repo: int = -1
    """Before a project's name."""
    file: int = -1
    """Before a file's name."""
    pad: int = -1


class TokenProb(msgspec.Struct, frozen=True, array_like=True):
    """The probability of one produced token and of its best rivals."""

    id: int
    logprob: float
    """Natural log of the probability; finite. With `post_sampling_probs` the probability itself."""
    top: tuple[tuple[int, float], ...] = ()
    """(token id, value) of the most likely tokens, best first."""


class Progress(msgspec.Struct, frozen=True, array_like=True):
    """How far a prompt has been read."""

    total: int
    """Tokens of the prompt."""
    cache: int
    """Of those, taken from the cache."""
    processed: int
    """Of those, in memory by now, the cached ones included."""
    time_ms: float
    """Since the reading began."""


class Timings(msgspec.Struct, frozen=True, kw_only=True):
    """What a generation cost."""

    cache_n: int = 0
    """Prompt tokens that came from the cache."""
    prompt_n: int = 0
    """Prompt tokens that were read."""
    prompt_ms: float = 0.0
    predicted_n: int = 0
    predicted_ms: float = 0.0
    queue_ms: float = 0.0
    """From arrival at the worker to the first work on it."""
    draft_n: int = 0
    """Tokens that were drafted."""
    draft_n_accepted: int = 0


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of one generation's answer, in order. The last one has `stop_type` other than `none`."""

    text: str = ""
    """Whole characters, never part of a stop string."""
    tokens: tuple[int, ...] = ()
    """The tokens produced since the last chunk, held-back text or not."""
    probs: tuple[TokenProb, ...] = ()
    """One entry a token when `n_probs` was asked for."""
    progress: Progress | None = None
    """Set on chunks that only report prefill progress."""
    prompt_probs: tuple[TokenProb, ...] = ()
    """Probabilities of prompt tokens from the second one on, when they were asked for."""
    slot: int = -1
    timings: Timings | None = None
    """Running figures; always set on the last chunk and on the first one with text."""
    stop_type: StopType = "none"
    stopping_word: str = ""
    truncated: bool = False


class AdapterFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a loaded LoRA adapter. Its id is its place in the list of them."""

    path: str
    scale: float
    """How strongly it counts for requests that name no adapters, until somebody changes that."""
    task_name: str = ""
    prompt_prefix: str = ""
    invocation: tuple[int, ...] = ()
    """The tokens in a prompt from which on it applies; none for one that always does."""


class ModelFacts(PoolingFacts, frozen=True, kw_only=True):
    """What is known of a loaded model and the context that serves it."""

    path: str
    description: str
    """The engine's one-line description, such as `llama 135M Q4_1`."""
    architecture: str
    n_params: int
    n_bytes: int
    """Size of the weights in bytes."""
    n_vocab: int
    vocab_type: int
    n_embd: int
    n_layer: int
    n_ctx_train: int
    n_ctx: int
    """Most tokens one sequence can hold."""
    n_slots: int
    layout: Literal["unified", "split"]
    flash_attention: bool
    n_threads: int
    n_threads_batch: int
    chat_template: str | None
    """The model's own Jinja template."""
    metadata: dict[str, str]
    """The GGUF's text and number entries; long arrays are left out."""
    can_cut: bool
    """Whether a suffix of a sequence can be dropped (false for recurrent, hybrid and sliding-window models)."""
    has_decoder: bool
    """Whether the model generates text."""
    engine: str
    """Version of the engine's bindings and the CPU features it was built with."""
    safe_mode: bool
    """Whether weights were loaded without repacking, after an illegal instruction."""
    n_batch: int = 2048
    """Most tokens in one decode call."""
    adapters: tuple[AdapterFacts, ...] = ()
    tuning: Tuning | None = None
    can_draft: bool = True
    """Whether what was guessed ahead can be taken back where it was wrong."""
    draft_model: str = ""
    """Description of the model that guesses ahead; empty without one."""
    chat_template_variants: dict[str, str] = msgspec.field(default_factory=dict)
    """Further Jinja templates of the model by name; `tool_use` is for conversations with tools."""
    media: MediaFacts | None = None
    """None for a model that takes text only."""


class SlotState(msgspec.Struct, frozen=True, kw_only=True):
    """One slot as the outside sees it."""

    id: int
    busy: bool = False
    request: int = -1
    """The running request's number within its worker client."""
    n_prompt: int = 0
    n_prompt_done: int = 0
    n_cached: int = 0
    """Prompt tokens that did not have to be read."""
    n_decoded: int = 0


class SlotTask(msgspec.Struct, frozen=True, kw_only=True):
    """The request that a slot works on, or last worked on."""

    generation: Generation
    produced: tuple[int, ...] = ()
    """Its answer so far."""


SlotAction = Literal["save", "restore", "erase"]


class SlotOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a slot action did."""

    n_tokens: int = 0
    """Tokens that were saved, restored or erased."""
    n_bytes: int = 0
    """Of the file."""
    ms: float = 0.0
