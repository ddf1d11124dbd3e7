"""OpenAI requests made into neutral values."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from puna.api.decode import Decoded, decode_generation
from puna.api.logprobs import chat_logprobs, legacy_logprobs
from puna.api.messages import decode_conversation, decode_tool_choice
from puna.api.openai.schema import ChatCompletionRequest, LegacyCompletionRequest
from puna.api.reasoning import decode_reasoning
from puna.errors import InvalidRequest
from puna.service.chat_turn import ChatTurn
from puna.service.infill import whole_fill_prompt
from puna.service.ports import Tokenizer
from puna.service.prompts import MediaPrompt, Written, split_prompts
from puna.service.service import Service
from puna.service.written import ReadPrompt, as_text, read_prompt


class LegacyPrompts(msgspec.Struct, frozen=True):
    """The prompts of `/v1/completions`, and what is shown around each answer."""

    read: list[ReadPrompt]
    echoes: list[str]
    """What is put before the answers to each prompt."""
    suffix: str
    """What is put after every answer."""


async def decode_prompts(service: Service, body: LegacyCompletionRequest) -> LegacyPrompts:
    """Every prompt. With a `suffix`, one with a gap where the vocabulary has tokens for that."""
    if body.prompt is None:
        raise InvalidRequest("Field 'prompt': Field required", param="prompt")
    written = split_prompts(body.prompt)
    tokenizer = service.tokenizer
    names = [f"prompt.{index}" for index in range(len(written))] if len(written) > 1 else ["prompt"]
    plain = [await read_prompt(service, one, param=name) for one, name in zip(written, names, strict=True)]
    echoes = [""] * len(written)
    if body.echo:
        echoes = [_shown(tokenizer, one, read.tokens) for one, read in zip(written, plain, strict=True)]
    if not body.suffix:
        return LegacyPrompts(plain, echoes, "")
    fim = tokenizer.fim
    if min(fim.prefix, fim.suffix, fim.middle) < 0:
        return LegacyPrompts(plain, echoes, body.suffix)
    filled = [await _filled(tokenizer, one, body.suffix, param=name) for one, name in zip(written, names, strict=True)]
    return LegacyPrompts(filled, echoes, "")


async def _filled(tokenizer: Tokenizer, written: Written, suffix: str, *, param: str) -> ReadPrompt:
    if isinstance(written, MediaPrompt):
        raise InvalidRequest("Field 'suffix': cannot be combined with pictures and sounds", param="suffix")
    return ReadPrompt(await whole_fill_prompt(tokenizer, written, suffix, param=param))


def _shown(tokenizer: Tokenizer, written: Written, tokens: Sequence[int]) -> str:
    """The prompt as it is echoed: as it was written, without a BOS that nobody wrote."""
    if isinstance(written, MediaPrompt):
        return as_text(written)
    if isinstance(written, str):
        return written
    head = written[0]
    added = isinstance(head, str) and tokens[0] == tokenizer.bos and not head.startswith(tokenizer.text(tokenizer.bos))
    return tokenizer.detokenize(tokens[1:] if added else tokens)


def decode_completion(service: Service, body: LegacyCompletionRequest) -> Decoded:
    """How the prompts of `/v1/completions` are to be continued."""
    logprobs = legacy_logprobs(body)
    scored = body.echo is True and logprobs.wanted
    if scored and body.suffix:
        raise InvalidRequest("Field 'suffix': cannot be combined with both 'echo' and 'logprobs'", param="suffix")
    return decode_generation(body, service, logprobs=logprobs, bias_texts=False, prompt_probs=scored)


def decode_chat(service: Service, body: ChatCompletionRequest) -> tuple[ChatTurn, Decoded]:
    """The turn that answers the conversation of `/v1/chat/completions`."""
    decoded = decode_generation(body, service, logprobs=chat_logprobs(body), bias_texts=False)
    legacy = bool(body.functions)
    turn = ChatTurn(
        conversation=decode_conversation(body),
        choice=decode_tool_choice(body),
        parallel=False if legacy else body.parallel_tool_calls,
        parse_calls=body.parse_tool_calls is not False,
        reasoning=decode_reasoning(body, service.settings),
        params=decoded.params,
        answer_field=decoded.constraint_field,
        tools_field="functions" if legacy else "tools",
    )
    return turn, decoded
