"""How tools, calls and results are written where a template does not write them itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import msgspec
from msgspec.structs import replace

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.generic import calls_text, result_text, tools_text
from puna.chat.formats.plan import Format
from puna.chat.formats.table import choose_format
from puna.chat.formats.written import can_write, write_calls
from puna.chat.messages import ToolCall
from puna.chat.template import ChatTemplate

_EXAMPLE = ToolCall("", "function name", '{"argument": "value"}')


class ToolTexts(msgspec.Struct, frozen=True, kw_only=True):
    """What stands for tools, calls and results in a conversation whose template does not show them."""

    tools: Callable[..., str] = tools_text
    """What the model is told about tools, in a system message."""
    calls: Callable[[Sequence[ToolCall]], str] = calls_text
    """Calls as the model wrote them."""
    result: Callable[[str, str | None], str] = result_text
    """What a tool gave back, with the tool's name if that is known, in a user's message."""
    own: bool = False
    """Whether this is the form in which the template shows calls, so that it may show those of a conversation with tools that
    it does not describe."""
    marks: frozenset[str] = frozenset()
    """Texts in `calls` that are control tokens where the vocabulary has them."""

    def saying(self, *, required: bool, parallel: bool) -> ToolTexts:
        """The same, with a description that says whether a tool has to be called, and whether several may be at once."""
        return replace(self, tools=partial(self.tools, required=required, parallel=parallel))


GENERIC = ToolTexts()
"""For templates that know nothing of tools."""


def format_of(template: ChatTemplate) -> Format:
    """How the model writes reasoning and calls: as its family does, or as it is told to where the template shows neither
    tools nor calls, or tools cannot be described in the family's form."""
    capabilities = template.capabilities
    form = choose_format(template.source)
    if capabilities.tools or (capabilities.tool_calls and texts_of(form).own):
        return form
    return choose_format(template.source, "generic")


def texts_of(form: Format) -> ToolTexts:
    """The texts in a family's own form; the generic ones if its calls cannot be written."""
    if not isinstance(form, DescribedFormat) or form.name == "generic":
        return GENERIC
    calls = form.description.calls
    if calls is None or not can_write(calls):
        return GENERIC
    return ToolTexts(
        tools=partial(tools_text, example=write_calls(calls, [_EXAMPLE])),
        calls=partial(write_calls, calls),
        own=True,
        marks=frozenset(form.description.marks(calls=True)),
    )
