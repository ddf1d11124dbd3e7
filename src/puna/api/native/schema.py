"""Bodies of the native routes."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field, RootModel, WithJsonSchema

from puna.api.fields import Body, Free, GenerationFields, LoraScale

_PROMPT = {
    "description": "a text, a list of token ids, a list that mixes both, or a list of those",
    "anyOf": [{"type": "string"}, {"type": "array"}, {"type": "object"}],
}

_DOCUMENT = {"description": "a text, or a list of texts and token ids", "anyOf": [{"type": "string"}, {"type": "array"}]}


class CompletionRequest(GenerationFields):
    """Continue one or more prompts."""

    prompt: Annotated[Any, WithJsonSchema(_PROMPT)] = None


class ExtraInput(Body):
    """A piece of another file."""

    text: str
    filename: str | None = None


class InfillRequest(GenerationFields):
    """Fill the gap between two texts."""

    input_prefix: Annotated[Any, WithJsonSchema(_DOCUMENT)] = None
    input_suffix: Annotated[Any, WithJsonSchema(_DOCUMENT)] = None
    input_extra: list[ExtraInput] | None = Field(default=None, description="pieces of other files, oldest first")
    prompt: str | None = Field(default=None, description="what follows `input_prefix` directly: the line up to the cursor")


class LoraAdaptersRequest(RootModel[list[LoraScale]]):
    """The scales of all adapters; those that are not named get 0."""

    model_config = ConfigDict(strict=True)


class TokenizeRequest(Body):
    """Text, or a list of texts and token ids, to be made into token ids."""

    content: Free = None
    add_special: bool | None = None
    parse_special: bool | None = None
    with_pieces: bool | None = None


class SlotFileRequest(Body):
    """The file that a slot is saved to or restored from."""

    filename: str = Field(description="a plain name inside the folder of --slot-save-path")


class DetokenizeRequest(Body):
    """Token ids to be made into text."""

    tokens: list[int] | None = None
