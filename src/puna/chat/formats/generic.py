"""Calls for models whose template knows nothing of tools: the model is told how to write them.

<tool_call>
{"name": "get_weather", "arguments": {"city": "Paris"}}
</tool_call>
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from puna.chat.formats.description import Description, Thinking
from puna.chat.formats.families.hermes import CALLS
from puna.chat.formats.plan import Tool
from puna.chat.messages import ToolCall


def generic(thinking: Thinking | None = None) -> Description:
    """The format, with these tags for thoughts."""
    return Description(name="generic", thinking=thinking, calls=CALLS)


EXAMPLE = '<tool_call>\n{"name": "function name", "arguments": {"argument": "value"}}\n</tool_call>'


def tools_text(tools: Sequence[Tool], *, required: bool = False, parallel: bool = True, example: str = EXAMPLE) -> str:
    """What the model is told about tools, for a system message.

    `required` is whether it has to call one, `example` how a call is written.
    """
    listed = "\n".join(
        json.dumps({"name": tool.name, "description": tool.description, "parameters": tool.parameters}, ensure_ascii=False)
        for tool in tools
    )
    when = "Answer by calling a function." if required else "Call a function when it helps to answer; otherwise answer as usual."
    several = " Several calls may follow each other." if parallel else " Make one call at a time."
    return (
        f"You can call these functions, described by JSON schemas:\n\n{listed}\n\n{when} A call is written like this, with "
        f"nothing after it:\n\n{example}\n\n{several.strip()} The function's result is then given to you."
    )


def calls_text(calls: Sequence[ToolCall]) -> str:
    """Calls that were made, as the model wrote them."""
    return "\n".join(map(_call_text, calls))


def _call_text(call: ToolCall) -> str:
    name, arguments = json.dumps(call.name, ensure_ascii=False), call.arguments.strip() or "{}"
    return f'<tool_call>\n{{"name": {name}, "arguments": {arguments}}}\n</tool_call>'


def result_text(content: str, name: str | None = None) -> str:
    """What a function gave, for a user's message."""
    head = f"Result of {name}:" if name else "Result of the function:"
    return f"{head}\n{content}"
