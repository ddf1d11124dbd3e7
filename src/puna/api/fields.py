"""The generation fields that every dialect accepts, under llama.cpp's names.

Every field may be null, which is the same as leaving it out; unknown fields are ignored. Ranges that a schema can state
are stated here; what needs the vocabulary is checked in `puna.api.decode`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictStr, WithJsonSchema

from puna.api.numbers import Count, CountOrAll, Int, Modest, Number, Share, Whole
from puna.api.speculative import SpeculativeFields

MAX_PROBS = 1024
"""Most alternatives that are reported for a token."""

MAX_ANSWERS = 128
"""Most answers to one prompt."""

MAX_SEED = 2**32 - 1

Free = Annotated[Any, WithJsonSchema({})]
"""Any JSON value; looked at by hand, because its forms are too many for a schema to give good messages."""

Probs = Annotated[Whole, Field(ge=0, le=MAX_PROBS)]

_TEXTS = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
_BIAS = {
    "description": "`[[id or text, bias or false], ...]`, or an object of biases by id or text; false bans a token",
    "anyOf": [{"type": "array", "items": {"type": "array"}}, {"type": "object"}],
}


class Body(BaseModel):
    """Base of all request bodies."""

    model_config = ConfigDict(strict=True, extra="ignore")


class StreamOptions(Body):
    """How a stream is to be sent."""

    include_usage: bool | None = None
    """Whether one last chunk brings the usage."""


class JsonSchemaFormat(Body):
    """OpenAI's envelope around a schema."""

    model_config = ConfigDict(strict=True, extra="allow")
    """Some clients leave the envelope out and send the schema itself."""

    name: str | None = None
    strict: bool | None = None
    json_schema: Free = Field(default=None, alias="schema")


class ResponseFormat(Body):
    """The form of the answer."""

    type: Literal["text", "json_object", "json_schema"]
    strict: bool | None = None
    json_schema: JsonSchemaFormat | None = None
    json_object_schema: Free = Field(default=None, alias="schema")


class SamplingFields(Body):
    """How the next token is chosen."""

    temperature: Number | None = Field(default=None, description="at most 0 is greedy")
    dynatemp_range: Modest | None = None
    dynatemp_exponent: Modest | None = None
    top_k: Int | None = None
    top_p: Share | None = None
    min_p: Share | None = None
    typical_p: Share | None = None
    top_n_sigma: Number | None = None
    xtc_probability: Share | None = None
    xtc_threshold: Share | None = None
    repeat_last_n: CountOrAll | None = None
    penalty_last_n: CountOrAll | None = Field(default=None, description="the same as `repeat_last_n`")
    repeat_penalty: Annotated[Modest, Field(ge=0.001)] | None = None
    presence_penalty: Modest | None = None
    frequency_penalty: Modest | None = None
    dry_multiplier: Modest | None = None
    dry_base: Modest | None = None
    dry_allowed_length: Count | None = None
    dry_penalty_last_n: CountOrAll | None = None
    dry_sequence_breakers: Annotated[list[StrictStr], Field(min_length=1, max_length=256)] | None = None
    mirostat: Annotated[Whole, Field(ge=0, le=2)] | None = None
    mirostat_mode: Annotated[Whole, Field(ge=0, le=2)] | None = Field(default=None, description="the same as `mirostat`")
    mirostat_tau: Modest | None = None
    mirostat_eta: Modest | None = None
    adaptive_target: Annotated[Number, Field(le=1)] | None = None
    adaptive_decay: Annotated[Number, Field(ge=0, le=0.99)] | None = None
    samplers: Annotated[Any, WithJsonSchema(_TEXTS)] = None
    seed: Annotated[Whole, Field(ge=-1, le=MAX_SEED)] | None = None
    logit_bias: Annotated[Any, WithJsonSchema(_BIAS)] = None
    logit_bias_type: Literal["input_ids", "tokens"] | None = None
    ignore_eos: bool | None = None
    min_tokens: Count | None = None
    min_keep: Count | None = None
    n_probs: Probs | None = None
    logprobs: bool | Probs | None = None
    top_logprobs: Probs | None = None
    post_sampling_probs: bool | None = None


class ConstraintFields(Body):
    """A language that the output must belong to. At most one of them."""

    grammar: str | None = Field(default=None, description="GBNF; an empty one counts for nothing")
    json_schema: Free = None
    response_format: ResponseFormat | None = None
    regex: str | None = None
    choice: Annotated[list[StrictStr], Field(min_length=1, max_length=1024)] | None = None
    lark: str | None = None
    grammar_lazy: bool | None = None
    grammar_triggers: list[Any] | None = None
    preserved_tokens: list[StrictStr] | None = None


class LoraScale(Body):
    """An adapter and how strongly it counts."""

    id: Count
    scale: Number


class AnswerFields(SamplingFields, ConstraintFields, SpeculativeFields):
    """All that says what one answer is to be, in whatever shape it is sent."""

    n_predict: CountOrAll | None = None
    max_completion_tokens: CountOrAll | None = Field(default=None, description="the same as `n_predict`")
    max_tokens: CountOrAll | None = Field(default=None, description="the same as `n_predict`")
    stop: Annotated[Any, WithJsonSchema(_TEXTS)] = None
    stop_sequences: Annotated[Any, WithJsonSchema(_TEXTS)] = None
    cache_prompt: bool | None = None
    id_slot: CountOrAll | None = None
    n_cache_reuse: Count | None = None
    n_keep: CountOrAll | None = None
    n_discard: Count | None = None
    n_indent: Count | None = None
    t_max_predict_ms: Annotated[Whole, Field(ge=-1, le=2**63 - 1)] | None = None
    sse_ping_interval: Annotated[Number, Field(ge=-1)] | None = None
    lora: list[LoraScale] | None = None
    deterministic: bool | None = None


class GenerationFields(AnswerFields):
    """All that is not particular to one dialect."""

    model: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n_cmpl: Whole | None = None
    n: Whole | None = Field(default=None, description="the same as `n_cmpl`")
    best_of: Annotated[Whole, Field(ge=1, le=MAX_ANSWERS)] | None = None
    return_tokens: bool | None = None
    return_progress: bool | None = None
    timings_per_token: bool | None = None
    response_fields: Annotated[list[StrictStr], Field(max_length=256)] | None = None
    verbose: StrictBool | None = None
