"""From messages to the text that the model reads, with the template's control tokens told from the users' text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from puna.chat.disguise import Disguise
from puna.chat.formats.thoughts import thinking_of
from puna.chat.messages import Message
from puna.chat.prepare import prepare
from puna.chat.sandbox.budget import TemplateLimit
from puna.chat.special import SpecialTexts
from puna.chat.template import ChatTemplate
from puna.chat.tool_schemas import complete_tools, simplify_tools
from puna.chat.tool_texts import GENERIC, ToolTexts
from puna.chat.values import as_template_value
from puna.errors import InvalidRequest

RESERVED = frozenset([
    "add_generation_prompt", "add_special_tokens", "bos_token", "chat_template", "continue_final_message", "conversation",
    "cycler", "dict", "eos_token", "joiner", "messages", "namespace", "raise_exception", "range", "return_assistant_tokens_mask",
    "return_dict", "return_tensors", "self", "strftime_now", "tokenize", "tokenizer_kwargs", "tools",
])  # fmt: skip
"""Template variables that a request may not set through `chat_template_kwargs`."""


class Segment(msgspec.Struct, frozen=True):
    """A piece of a rendered prompt."""

    text: str
    trusted: bool
    """Whether control-token texts in it are the template's own, to be tokenised as control tokens. In a piece that is not
    trusted they are a user's, and plain text. Pieces meet only where the next one, or the one before, is a control token
    of the template, so tokenising them one by one splits no word."""


class Rendered(msgspec.Struct, frozen=True):
    """A prompt: its whole text, the same in segments, and whether it brings its own begin-of-text token."""

    text: str
    segments: tuple[Segment, ...]
    starts_with_bos: bool


def render_chat(
    template: ChatTemplate,
    messages: Sequence[Message],
    *,
    special_tokens: SpecialTexts,
    tools: Sequence[Mapping[str, Any]] | None = None,
    add_generation_prompt: bool | None = None,
    continue_final_message: bool | None = None,
    kwargs: Mapping[str, Any] | None = None,
    texts: ToolTexts = GENERIC,
) -> Rendered:
    """Render a conversation. `texts` writes what of tools the template does not.

    A last message of the assistant is continued, not closed, if `continue_final_message` is true, or if neither it nor
    `add_generation_prompt` is given. With `add_generation_prompt` (the default otherwise) the prompt ends where the
    assistant's next turn begins. Raises `InvalidRequest` for bad roles, reserved kwargs, and what the template refuses.
    """
    variables = dict(kwargs or {})
    check_kwargs(variables)
    job = _Job(template, special_tokens, messages, tools or (), variables, texts)
    if _continues(messages, add_generation_prompt, continue_final_message):
        return job.continued()
    return job.closed(add_generation_prompt is not False)


def check_kwargs(kwargs: Mapping[str, Any]) -> None:
    """Raise `InvalidRequest` that names the first key that `chat_template_kwargs` may not have."""
    for key in kwargs:
        if key in RESERVED or not key.isidentifier() or key.startswith("_"):
            raise InvalidRequest(f"chat_template_kwargs may not set {key[:80]!r}", param=f"chat_template_kwargs.{key[:80]}")


def _continues(messages: Sequence[Message], add_generation_prompt: bool | None, continue_final_message: bool | None) -> bool:
    last = messages[-1] if messages else None
    is_prefill = last is not None and last.role == "assistant" and not last.tool_calls
    if continue_final_message is None:
        return is_prefill and add_generation_prompt is None
    if not continue_final_message:
        return False
    if add_generation_prompt:
        raise InvalidRequest(
            "continue_final_message and add_generation_prompt cannot both be true", param="continue_final_message"
        )
    if not is_prefill:
        raise InvalidRequest(
            "continue_final_message needs a last message of the assistant, without tool calls", param="continue_final_message"
        )
    return True


class _Job:
    """One call of `render_chat`."""

    def __init__(
        self,
        template: ChatTemplate,
        special: SpecialTexts,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]],
        kwargs: dict[str, Any],
        texts: ToolTexts,
    ) -> None:
        self._template = template
        self._special = special
        capabilities = template.capabilities
        prepared = prepare(messages, capabilities, tools, texts)
        if not capabilities.tools:
            tools = ()
        elif tools:
            tools = complete_tools(tools, capabilities)
        values = [as_template_value(message, capabilities) for message in prepared]
        self._last = prepared[-1]
        self._disguise = Disguise(special, [template.source, template.bos_token, template.eos_token, values, tools, kwargs])
        own = {"<think>", "</think>"} if capabilities.reasoning == "content" else set()
        if not capabilities.tool_calls:
            own |= texts.marks
        self._kept = (template.inspected | own) & special.texts
        self._values = [self._hide(value) for value in values]
        self._tools = self._disguise.hide(tools) if tools else capabilities.empty_tools
        if isinstance(enabled := kwargs.get("enable_thinking"), bool):
            kwargs = {**capabilities.thinking(enabled), **kwargs}
        self._kwargs: dict[str, Any] = {key: self._disguise.hide(value) for key, value in kwargs.items()}

    def _hide(self, value: dict[str, Any]) -> dict[str, Any]:
        # The role, and the type of parts and calls, are ours. A template that strips the reasoning off an earlier answer
        # has to see the markers it looks for in there.
        keep = self._kept if value["role"] == "assistant" else frozenset()
        hidden = {key: item if key == "role" else self._disguise.hide(item) for key, item in value.items() if key != "content"}
        hidden["content"] = self._hide_content(value["content"], keep)
        return hidden

    def _hide_content(self, content: Any, keep: frozenset[str]) -> Any:
        if isinstance(content, dict):
            return {key: self._hide_content(parts, keep) for key, parts in content.items()}
        if not isinstance(content, list):
            return self._disguise.hide(content, keep)
        return [
            {key: item if key == "type" else self._disguise.hide(item, keep) for key, item in part.items()} for part in content
        ]

    def closed(self, add_generation_prompt: bool) -> Rendered:
        """The conversation with all turns closed."""
        return self._finish(self._render(self._values, add_generation_prompt))

    def continued(self) -> Rendered:
        """The conversation with the last turn left open."""
        *earlier, last = self._values
        thought = self._last.reasoning_content if not self._last.text else None
        text = self._cut_after(earlier, last, thought)
        if text is None:
            # The template still can open the turn that it would not show.
            text = self._render(earlier, True)
            text = text + _content_text(last) if not thought else self._thinking(text) + str(self._disguise.hide(thought))
        return self._finish(text)

    def _thinking(self, text: str) -> str:
        """A prompt for the next turn, with its thoughts open."""
        tags = thinking_of(self._template.source)
        if tags is None:
            raise InvalidRequest("this model's template has no reasoning that could be continued", param="messages")
        return text if text.rstrip().endswith(tags.begin.strip()) else f"{text}{tags.begin.strip()}{tags.lead}"

    def _cut_after(self, earlier: list[dict[str, Any]], last: dict[str, Any], thought: str | None) -> str | None:
        """The text up to the end of the last message, or of what it thinks if it says nothing; none where the template refuses
        or drops an assistant's message at the end, or forgets the system message because of it."""
        end = self._disguise.fresh()
        if thought:
            message = replace(self._last, reasoning_content=thought + end)
            last = self._hide(as_template_value(message, self._template.capabilities))
        else:
            last = _append(last, end)
        try:
            text, found, _ = self._render([*earlier, last], False).rpartition(end)
        except InvalidRequest:
            if not earlier:
                raise
            return None
        system = [_content_text(value).strip() for value in earlier if value["role"] in ("system", "developer")]
        return text if found and all(part in text for part in system) else None

    def _render(self, values: Sequence[Mapping[str, Any]], add_generation_prompt: bool) -> str:
        try:
            return self._template.render(values, self._tools, add_generation_prompt, **self._kwargs)
        except InvalidRequest as error:
            simple = simplify_tools(self._tools or ())
            if simple == self._tools or isinstance(error.__cause__, TemplateLimit):
                raise
            try:
                text = self._template.render(values, simple, add_generation_prompt, **self._kwargs)
            except InvalidRequest:
                raise error from None
            self._tools = simple
            return text

    def _finish(self, text: str) -> Rendered:
        bos = self._template.bos_token
        whole = self._disguise.restore(text)
        return Rendered(
            whole, self._segments(text) if self._disguise.used else _trusted(whole), bool(bos) and text.startswith(bos)
        )

    def _segments(self, text: str) -> tuple[Segment, ...]:
        segments: list[Segment] = []
        kept = 0
        done = 0
        for start, end in [*self._special.find(text), (len(text), len(text))]:
            plain = self._disguise.restore(text[done:start])
            if plain != text[done:start]:
                segments += [*_trusted(text[kept:done]), Segment(plain, False)]
                kept = start
            done = end
        return (*segments, *_trusted(text[kept:]))


def _trusted(text: str) -> tuple[Segment, ...]:
    return (Segment(text, True),) if text else ()


def _append(value: dict[str, Any], end: str) -> dict[str, Any]:
    content = value["content"]
    if isinstance(content, dict):
        return {**value, "content": {"blocks": _extended(content["blocks"], end)}}
    if not isinstance(content, list):
        return {**value, "content": (content or "") + end}
    return {**value, "content": _extended(content, end)}


def _extended(parts: list[dict[str, Any]], end: str) -> list[dict[str, Any]]:
    """The same parts, the last of which goes on."""
    return [*parts[:-1], {**parts[-1], "text": parts[-1]["text"] + end}]


def _content_text(value: dict[str, Any]) -> str:
    content = value["content"]
    if isinstance(content, dict):
        content = [part for part in content["blocks"] if part["type"] == "response"]
    return "".join(part.get("text", "") for part in content) if isinstance(content, list) else content or ""
