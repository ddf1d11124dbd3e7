"""Conversations of every kind that clients send."""

from __future__ import annotations

from typing import Any

from puna.chat import Message, TextPart, ToolCall
from tests.unit.chat.helpers import assistant, developer, system, user


def tool(name: str, description: str = "", **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": sorted(properties)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TOOLS = [
    tool("get_weather", "Weather of a city <now>", city={"type": "string", "description": "Name, such as 'Zürich'"}),
    tool("add", "Adds", a={"type": "number"}, b={"type": "number", "enum": [1, 2.5]}, deep={"type": "array", "items": {}}),
]


def weather(city: str, id: str = "call_weather_1") -> ToolCall:
    return ToolCall(id, "get_weather", f'{{"city": "{city}"}}')


def adding(id: str = "call_add_2") -> ToolCall:
    return ToolCall(id, "add", '{"a": 1, "b": 2.5, "deep": [{"x": null}, true, "ä\\n"]}')


def calling(*calls: ToolCall, text: str | None = None, reasoning: str | None = None) -> Message:
    return Message(role="assistant", content=text, tool_calls=calls, reasoning_content=reasoning)


def result(text: str, id: str) -> Message:
    return Message(role="tool", content=text, tool_call_id=id)


def thinking(text: str, reasoning: str) -> Message:
    return Message(role="assistant", content=text, reasoning_content=reasoning)


ODD = "Ünïcode 漢字 🙂 \\n \"quoted\" 'single' <b>&amp;</b> {{ 1 }} {% x %} \t tab"

Case = tuple[list[Message], list[dict[str, Any]]]

CASES: dict[str, Case] = {
    "plain": ([user("hello")], []),
    "system": ([system("Be brief"), user("hello"), assistant("Hi"), user("more")], []),
    "developer": ([developer("Be brief"), user("hello")], []),
    "several system": (
        [system("Be brief"), system("Be kind"), user("hello"), assistant("Hi"), system("Be late"), user("more")],
        [],
    ),
    "tools": ([system("Be brief"), user("hello")], TOOLS),
    "tool result": (
        [user("weather?"), calling(weather("Paris")), result("18 degrees", "call_weather_1"), assistant("Warm"), user("thanks")],
        TOOLS,
    ),
    "parallel": (
        [
            user("both?"),
            calling(weather("Paris"), adding()),
            result("18 degrees", "call_weather_1"),
            result("3.5", "call_add_2"),
        ],
        TOOLS,
    ),
    "reasoning": (
        [
            user("weather?"),
            calling(weather("Oslo"), text="Let me look", reasoning="They want Oslo"),
            result("cold", "call_weather_1"),
            thinking("It is cold", "So it is cold"),
            user("and now?"),
        ],
        TOOLS,
    ),
    "parts": (
        [
            Message(role="system", content=(TextPart("Be brief"),)),
            Message(role="user", content=(TextPart("hello"), TextPart("you"))),
            Message(role="assistant", content=(TextPart("Hi"),)),
            Message(role="user", content=(TextPart("more"),)),
        ],
        [],
    ),
    "odd text": (
        [system(ODD), user(ODD), calling(ToolCall("c", "add", "{}")), result(ODD, "c"), assistant(ODD), user(ODD)],
        TOOLS,
    ),
    "empty": (
        [system(""), user("hello"), Message(role="assistant", tool_calls=(adding("x"),)), result("", "x"), user("more")],
        TOOLS,
    ),
    "prefill": ([user("hello"), assistant("Hi"), user("more"), assistant("Well, ")], []),
}  # fmt: skip
"""Twelve conversations with their tools."""
