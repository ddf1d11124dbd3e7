"""Tools and which of them may be called, as OpenAI's clients say it, today's and older ones."""

from __future__ import annotations

from typing import Any, NoReturn

from puna.errors import InvalidRequest
from puna.service.chat import Tool
from puna.service.chat_turn import ToolChoice

MAX_TOOLS = 1024
MAX_NAME = 256
"""Most characters of a tool's name."""


def decode_tools(tools: list[Any] | None, functions: list[Any] | None) -> tuple[Tool, ...]:
    """The tools of a request, from whichever of the two fields has them. Raises `InvalidRequest` that names the place."""
    if tools and functions:
        _refuse("functions", "cannot be combined with 'tools'")
    name, items = ("tools", tools) if tools else ("functions", functions or [])
    if len(items) > MAX_TOOLS:
        _refuse(name, f"more than {MAX_TOOLS} tools")
    found: dict[str, Tool] = {}
    for index, item in enumerate(items):
        at = f"{name}.{index}"
        tool = _tool(item, at) if name == "tools" else _function(item, at)
        if found.setdefault(tool.name, tool) != tool:
            _refuse(f"{at}.function.name" if name == "tools" else f"{at}.name", "another tool has the same name")
    return tuple(found.values())


def _tool(item: Any, at: str) -> Tool:
    if not isinstance(item, dict):
        return _refuse(at, "an object is expected")
    kind = item.get("type", "function")
    if kind != "function":
        _refuse(f"{at}.type", "only tools of type 'function' can be called")
    if "function" in item:
        return _function(item["function"], f"{at}.function")
    return _function(item, at)


def _function(item: Any, at: str) -> Tool:
    if not isinstance(item, dict):
        return _refuse(at, "an object is expected")
    name, description, strict = item.get("name"), item.get("description"), item.get("strict")
    if not isinstance(name, str) or not name.strip() or len(name) > MAX_NAME or not name.isprintable():
        return _refuse(f"{at}.name", f"a text of 1 to {MAX_NAME} printable characters is expected")
    if description is not None and not isinstance(description, str):
        return _refuse(f"{at}.description", "a text is expected")
    if strict is not None and not isinstance(strict, bool):
        return _refuse(f"{at}.strict", "true or false is expected")
    parameters = item.get("parameters") or {}
    if not isinstance(parameters, dict):
        return _refuse(f"{at}.parameters", "a JSON schema is expected, which is an object")
    kind = parameters.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        return _refuse(f"{at}.parameters.type", "arguments are an object")
    return Tool(name=name, description=description or "", parameters=parameters, strict=strict is True)


def decode_choice(value: Any, function_call: Any = None, *, legacy: bool = False) -> ToolChoice:
    """Which tools may be called. `function_call` is what clients that send `functions` (`legacy`) say it with."""
    if legacy and value is None:
        return _legacy_choice(function_call)
    if value is None:
        return ToolChoice()
    if value in ("auto", "none", "required"):
        return ToolChoice(value)
    if isinstance(value, dict) and value.get("type") == "function":
        return ToolChoice("required", (_name(value.get("function", value), "tool_choice.function"),))
    if isinstance(value, dict) and value.get("type") == "allowed_tools":
        return _allowed(value.get("allowed_tools", value))
    return _refuse("tool_choice", "'auto', 'none', 'required', a function or allowed tools are expected")


def _legacy_choice(value: Any) -> ToolChoice:
    if value is None or value in ("auto", "none"):
        return ToolChoice(value or "auto")
    return ToolChoice("required", (_name(value, "function_call"),))


def _allowed(value: Any) -> ToolChoice:
    at = "tool_choice.allowed_tools"
    if not isinstance(value, dict) or not isinstance(value.get("tools"), list):
        return _refuse(f"{at}.tools", "a list is expected")
    mode = value.get("mode", "auto")
    if mode not in ("auto", "required"):
        return _refuse(f"{at}.mode", "'auto' or 'required' is expected")
    names = []
    for index, item in enumerate(value["tools"]):
        function = item.get("function", item) if isinstance(item, dict) else None
        names.append(_name(function, f"{at}.tools.{index}.function"))
    return ToolChoice(mode, tuple(dict.fromkeys(names)))


def _name(value: Any, at: str) -> str:
    name = value.get("name") if isinstance(value, dict) else None
    return name if isinstance(name, str) else _refuse(f"{at}.name", "a text is expected")


def _refuse(field: str, reason: str) -> NoReturn:
    raise InvalidRequest(f"Field '{field}': {reason}", param=field)
