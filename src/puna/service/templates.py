"""The templates that a conversation may be rendered with: the model's own, further ones by name, and those of requests."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from puna.chat import check_kwargs
from puna.chat_templates import BUILT_IN
from puna.config import ServerSettings
from puna.errors import InvalidRequest, NotSupported
from puna.service.chat import ChatRenderer, Conversation
from puna.service.ports import Tokenizer
from puna.types import ModelFacts

MAX_KEPT = 4
"""Templates of requests that stay compiled."""
MAX_REQUESTED = 1 << 16
"""Most characters of a template that a request brings: compiling takes up to some ten microseconds for each."""
TOOL_USE = "tool_use"
"""Name of a model's template for conversations with tools."""


class Templates:
    """The templates of one model."""

    def __init__(self, tokenizer: Tokenizer, settings: ServerSettings, facts: ModelFacts) -> None:
        """Raises `InvalidRequest` for a configured template, or the model's own, that cannot be used."""
        self._tokenizer = tokenizer
        self._settings = settings
        check_kwargs(settings.chat_template_kwargs)
        own = BUILT_IN.get(facts.chat_template or "", facts.chat_template)  # RWKV's files bring the name of one
        self.default = ChatRenderer(tokenizer, settings.chat_template or own)
        """For conversations that need no other."""
        self.variants = {} if settings.chat_template else facts.chat_template_variants
        """The model's further templates by name."""
        self._kept: OrderedDict[str, ChatRenderer] = OrderedDict()
        self._compiling = asyncio.Lock()

    async def choose(self, conversation: Conversation) -> ChatRenderer:
        """The one that the conversation asks for, else the model's; with tools the one that it has for tools.

        Raises `InvalidRequest` that names the field for one that there is not, that is not allowed or does not compile.
        """
        source = conversation.template
        if source is None:
            source = self.variants.get(TOOL_USE) if conversation.tools else None
            if source is None:
                return self.default
        elif source in self.variants:
            source = self.variants[source]
        elif not _is_jinja(source):
            self._check_name(source, conversation.template_field)
        elif not self._settings.request_templates:
            field = conversation.template_field
            reason = "templates are not accepted from clients (the server's --request-templates allows them); names are"
            raise InvalidRequest(f"Field '{field}': {reason}", param=field)
        elif len(source) > MAX_REQUESTED:
            field = conversation.template_field
            raise InvalidRequest(f"Field '{field}': the template is longer than {MAX_REQUESTED} characters", param=field)
        return await self._compiled(source, conversation.template_field)

    def _check_name(self, name: str, field: str) -> None:
        if name.strip().lower() not in BUILT_IN:
            known = ", ".join([*self.variants, *BUILT_IN])
            raise InvalidRequest(f"Field '{field}': there is no chat template called {name[:40]!r}; known: {known}", param=field)

    async def _compiled(self, source: str, field: str) -> ChatRenderer:
        async with self._compiling:
            found = self._kept.pop(source, None)
            if found is None:
                found = await asyncio.to_thread(self._compile, source, field)
            self._kept[source] = found
            if len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)
        return found

    def _compile(self, source: str, field: str) -> ChatRenderer:
        try:
            renderer = ChatRenderer(self._tokenizer, source)
        except InvalidRequest as error:
            raise InvalidRequest(f"Field '{field}': {error.message}", param=field) from error
        # Found out here, on a thread: whoever renders first would wait for it on the event loop.
        _ = renderer.format, renderer.capabilities
        return renderer


def read_templates(tokenizer: Tokenizer, settings: ServerSettings, facts: ModelFacts) -> Templates | NotSupported:
    """The model's templates, or why there can be no chat."""
    try:
        return Templates(tokenizer, settings, facts)
    except InvalidRequest as error:
        return NotSupported(f"chat is not possible with this template: {error.message}")


def _is_jinja(text: str) -> bool:
    return "{{" in text or "{%" in text
