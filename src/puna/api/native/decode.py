"""Native requests made into neutral values."""

from __future__ import annotations

from puna.api.decode import Decoded, decode_generation
from puna.api.fields import GenerationFields
from puna.api.logprobs import native_logprobs
from puna.api.native.schema import CompletionRequest, InfillRequest
from puna.errors import InvalidRequest
from puna.service.infill import Gap, Piece
from puna.service.prompts import MediaPrompt, Prompt, split_prompts
from puna.service.service import Service
from puna.service.written import ReadPrompt, read_prompt


async def decode_prompts(service: Service, body: CompletionRequest) -> list[ReadPrompt]:
    """Every prompt."""
    if body.prompt is None:
        raise InvalidRequest("Field 'prompt': Field required", param="prompt")
    prompts = split_prompts(body.prompt)
    many = len(prompts) > 1
    return [
        await read_prompt(service, prompt, param=f"prompt.{index}" if many else "prompt") for index, prompt in enumerate(prompts)
    ]


def decode_completion(service: Service, body: GenerationFields) -> Decoded:
    """How the prompts are to be continued."""
    return decode_generation(body, service, logprobs=native_logprobs(body), bias_texts=True)


def decode_gap(body: InfillRequest) -> Gap:
    """What lies around the place to be filled."""
    return Gap(
        before=_document("input_prefix", body.input_prefix),
        line=body.prompt or "",
        after=_document("input_suffix", body.input_suffix),
        pieces=tuple(Piece(piece.text, piece.filename or "tmp") for piece in body.input_extra or ()),
    )


def _document(name: str, value: object) -> Prompt:
    """A text, or token ids and texts in a list, which may be empty."""
    if value is None:
        raise InvalidRequest(f"Field '{name}': Field required", param=name)
    if value == []:
        return []
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value
    documents = split_prompts(value, param=name)
    if len(documents) != 1 or isinstance(documents[0], MediaPrompt) or isinstance(value, dict):
        raise InvalidRequest(f"Field '{name}': one text, or one list of texts and token ids, is expected", param=name)
    return documents[0]
