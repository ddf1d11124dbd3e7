"""Conversations made into prompts with the loaded model's template."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import msgspec

from puna.chat import (
    ChatTemplate,
    MediaPart,
    Message,
    Part,
    Rendered,
    SpecialTexts,
    TextPart,
    ToolCall,
    builtin_template,
    content_of,
    render_chat,
)
from puna.chat.events import CallArguments, CallBegin, Event, Reasoning, Text
from puna.chat.formats.plan import Format, Tool
from puna.chat.tool_texts import format_of, texts_of
from puna.service.media import Mark, check_marks, split_at
from puna.service.ports import Tokenizer
from puna.service.prompts import at_least_one, tokenize_text
from puna.types import MEDIA, Media

__all__ = [
    "CallArguments",
    "CallBegin",
    "ChatRenderer",
    "Conversation",
    "Event",
    "MediaPart",
    "Message",
    "Part",
    "Reasoning",
    "Text",
    "TextPart",
    "Tool",
    "ToolCall",
    "content_of",
]

LONG_CHAT = 65_536
"""Characters from which a conversation is rendered on a thread, so that other requests do not wait for it."""

DEFAULT_TEMPLATE = "chatml"


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """What a template is given."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None
    kwargs: Mapping[str, Any] = {}
    required: bool = False
    """Whether a tool has to be called."""
    parallel: bool = True
    """Whether there may be several calls at once."""
    template: str | None = None
    """Name or Jinja text of another template than the model's."""
    template_field: str = "chat_template"
    """The field that a complaint about the template should name."""


class ChatRenderer:
    """A template beside the vocabulary that its output is read with."""

    def __init__(self, tokenizer: Tokenizer, source: str | None) -> None:
        """`source` is Jinja, the name of a built-in template, or None for what most models understand.

        Raises `InvalidRequest` for a template that does not compile.
        """
        if not source:
            source = DEFAULT_TEMPLATE
        if "{" not in source:
            source = builtin_template(source)
        self._tokenizer = tokenizer
        # A vocabulary's user-defined tokens may be words, or marks of the template like any control token.
        marks = [text for text in tokenizer.added_texts() if len(text) > 2 and text.strip() and text in source]
        self._marks = SpecialTexts(marks)
        self.special = SpecialTexts([*tokenizer.special_texts(), *marks])
        self.template = ChatTemplate(source, bos_token=_text(tokenizer, tokenizer.bos), eos_token=_text(tokenizer, tokenizer.eos))

    @cached_property
    def format(self) -> Format:
        """How the template's family writes reasoning and calls."""
        return format_of(self.template)

    def reasoning_variables(self, enabled: bool | None, effort: str | None) -> dict[str, Any]:
        """What the template is told of whether and how much to think, under the names that it reads."""
        capabilities = self.template.capabilities
        told = {} if enabled is None else capabilities.thinking(enabled)
        return told if effort is None else {**told, **capabilities.effort(effort)}

    async def render(self, conversation: Conversation) -> Rendered:
        """The text. Raises `InvalidRequest` for what the template does not take."""
        if sum(len(message.text) for message in conversation.messages) < LONG_CHAT:
            return self._render(conversation)
        return await asyncio.to_thread(self._render, conversation)

    def _render(self, conversation: Conversation) -> Rendered:
        kwargs = conversation.kwargs
        if conversation.required and conversation.tools and "tool_choice" in self.template.variables:
            kwargs = {"tool_choice": "required", **kwargs}
        return render_chat(
            self.template,
            conversation.messages,
            special_tokens=self.special,
            tools=[_tool_value(tool) for tool in conversation.tools] or None,
            add_generation_prompt=conversation.add_generation_prompt,
            continue_final_message=conversation.continue_final_message,
            kwargs=kwargs,
            texts=texts_of(self.format).saying(required=conversation.required, parallel=conversation.parallel),
        )

    async def tokenize(self, rendered: Rendered) -> tuple[int, ...]:
        """Token ids of a prompt of text: control tokens only where the template wrote them, and BOS at most once."""
        tokens, _ = await self.tokenize_marked(rendered, ())
        return tokens

    async def tokenize_marked(self, rendered: Rendered, marks: Sequence[Mark]) -> tuple[tuple[int, ...], tuple[Media, ...]]:
        """The same, and what stands at each `MEDIA` among them. Raises `InvalidRequest` where the template left a mark out."""
        tokenizer = self._tokenizer
        check_marks(rendered.text, marks)
        by_text = {mark.text: mark for mark in marks}
        media: list[Media] = []
        tokens = [tokenizer.bos] if tokenizer.add_bos and tokenizer.bos >= 0 and not rendered.starts_with_bos else []
        for segment in rendered.segments:
            for piece in split_at(segment.text, by_text):
                if isinstance(piece, Mark):
                    tokens.append(MEDIA)
                    media += [piece.media] if piece.media is not None else []
                    continue
                for text in [piece] if segment.trusted else self._without_marks(piece):
                    tokens += await tokenize_text(tokenizer, text, add_special=False, parse_special=segment.trusted)
        return at_least_one(tokenizer, tokens, param="messages"), tuple(media)

    def _without_marks(self, text: str) -> list[str]:
        """The text in pieces that hold no mark as a whole: nothing else keeps it from becoming that token."""
        cuts = [0, *(start + 1 for start, _ in self._marks.find(text)), len(text)]
        return [text[start:end] for start, end in pairwise(cuts) if end > start]

    @property
    def capabilities(self) -> dict[str, bool]:
        """What chats can hold, under llama.cpp's names. Tools are written out for templates that do not know them."""
        found = self.template.capabilities
        return {
            "supports_string_content": not found.wants_parts,
            "supports_typed_content": found.wants_parts,
            "supports_tools": True,
            "supports_tool_calls": True,
            "supports_parallel_tool_calls": found.parallel_tool_calls or not found.tools,
            "supports_system_role": found.system,
            "supports_preserve_reasoning": found.reasoning is not None,
            "supports_object_arguments": found.object_arguments or not found.tools,
        }


def _tool_value(tool: Tool) -> dict[str, Any]:
    """A tool as templates read it, without what nobody said of it."""
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    if tool.parameters:
        function["parameters"] = dict(tool.parameters)
    return {"type": "function", "function": function}


def _text(tokenizer: Tokenizer, token: int) -> str:
    return tokenizer.text(token) if token >= 0 else ""
