"""Calls of tools and their results in earlier turns, made into what a template can take."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from puna.chat.capabilities import Capabilities
from puna.chat.formats.plan import Tool
from puna.chat.messages import Message, ToolCall
from puna.chat.tool_texts import ToolTexts

SEPARATOR = "\n\n"


def bridge_history(messages: Sequence[Message], capabilities: Capabilities, texts: ToolTexts) -> list[Message]:
    """The same conversation with calls and results in a form that the template shows."""
    linked = list(_linked(messages))
    if not capabilities.any_tool_call_id:
        linked = [_with_short_ids(message) for message in linked]
    foreign = not capabilities.tools and not texts.own
    if foreign or not capabilities.tool_calls:
        linked = [_calls_as_text(message, texts) for message in linked]
    elif not capabilities.parallel_tool_calls:
        linked = list(_one_call_a_turn(linked))
    if not capabilities.calls_with_text:
        linked = [part for message in linked for part in _text_apart(message)]
    if capabilities.filler is not None:
        linked = list(_filled(linked, capabilities.filler))
    if not capabilities.reasoning_with_text:
        linked = [_text_as_reasoning(message) for message in linked]
    if foreign or not capabilities.tool_results:
        linked = list(_results_as_text(linked, texts))
    return linked


def describe_tools(tools: Sequence[Mapping[str, Any]], texts: ToolTexts) -> Message:
    """The system message that tells the model about its tools."""
    return Message(role="system", content=texts.tools([_tool(tool) for tool in tools]))


def _tool(value: Mapping[str, Any]) -> Tool:
    function = value.get("function", value)
    return Tool(
        name=str(function.get("name", "")),
        description=str(function.get("description") or ""),
        parameters=function.get("parameters") or {},
    )


def _linked(messages: Sequence[Message]) -> Iterator[Message]:
    """Every call with an id, and every result with the id and the name of the call that it answers: the one that it names,
    else the first that has no result yet."""
    waiting: deque[ToolCall] = deque()
    n_calls = 0
    for message in messages:
        if message.tool_calls:
            calls = []
            for call in message.tool_calls:
                calls.append(call if call.id else replace(call, id=f"call_{n_calls}"))
                n_calls += 1
            waiting = deque(calls)
            yield replace(message, tool_calls=tuple(calls))
        elif message.role == "tool":
            answered = next((call for call in waiting if call.id == message.tool_call_id), None)
            if answered is None and not message.tool_call_id and waiting:
                answered = waiting[0]
            if answered is None:
                yield message
                continue
            waiting.remove(answered)
            yield replace(message, tool_call_id=answered.id, name=message.name or answered.name)
        else:
            yield message


def _with_short_ids(message: Message) -> Message:
    """Ids of nine letters and digits; equal ids stay equal."""
    calls = tuple(replace(call, id=_short(call.id)) for call in message.tool_calls)
    id = message.tool_call_id
    return replace(message, tool_calls=calls, tool_call_id=id if id is None else _short(id))


def _short(id: str) -> str:
    if len(id) == 9 and id.isascii() and id.isalnum():
        return id
    return hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()[:9]


def _calls_as_text(message: Message, texts: ToolTexts) -> Message:
    if not message.tool_calls:
        return message
    text = "\n".join(filter(None, [message.text, texts.calls(message.tool_calls)]))
    return replace(message, content=text, tool_calls=())


def _one_call_a_turn(messages: Sequence[Message]) -> Iterator[Message]:
    """Turns with several calls as several turns, each followed by its own result."""
    index = 0
    while index < len(messages):
        message = messages[index]
        index += 1
        if len(message.tool_calls) < 2:
            yield message
            continue
        results = []
        while index < len(messages) and messages[index].role == "tool":
            results.append(messages[index])
            index += 1
        for place, call in enumerate(message.tool_calls):
            if place == 0:
                yield replace(message, tool_calls=(call,))
            else:
                yield Message(role="assistant", tool_calls=(call,))
            own = [result for result in results if result.tool_call_id == call.id]
            yield from own
            results = [result for result in results if result.tool_call_id != call.id]
        yield from results


def _text_apart(message: Message) -> list[Message]:
    """Text and calls of one turn as two turns."""
    if not message.tool_calls or not message.text:
        return [message]
    return [replace(message, tool_calls=()), Message(role="assistant", tool_calls=message.tool_calls)]


def _filled(messages: Sequence[Message], filler: str) -> Iterator[Message]:
    for index, message in enumerate(messages):
        if message.role == "user" and index and messages[index - 1].role == "tool":
            yield Message(role="assistant", content=filler)
        yield message


def _text_as_reasoning(message: Message) -> Message:
    """What is said before a call becomes the end of what was thought, for templates that take one of the two."""
    if not message.tool_calls or not message.reasoning_content or not message.text:
        return message
    return replace(message, reasoning_content=message.reasoning_content + SEPARATOR + message.text, content=None)


def _results_as_text(messages: Sequence[Message], texts: ToolTexts) -> Iterator[Message]:
    results: list[str] = []
    for message in messages:
        if message.role == "tool":
            results.append(texts.result(message.text, message.name))
            continue
        if results:
            yield Message(role="user", content=SEPARATOR.join(results))
            results = []
        yield message
    if results:
        yield Message(role="user", content=SEPARATOR.join(results))
