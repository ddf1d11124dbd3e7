"""Bridging the difference between what clients send and what a template takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from puna.chat.capabilities import Capabilities
from puna.chat.messages import Message, check_messages
from puna.chat.tool_history import SEPARATOR, bridge_history, describe_tools
from puna.chat.tool_texts import GENERIC, ToolTexts


def prepare(
    messages: Sequence[Message],
    capabilities: Capabilities,
    tools: Sequence[Mapping[str, Any]] = (),
    texts: ToolTexts = GENERIC,
) -> list[Message]:
    """The messages as the template can take them. Raises `InvalidRequest` for unknown roles and for no messages at all.

    `developer` becomes `system`, and `function` becomes `tool`, where the template does not know them. System messages
    stay where they are if the template shows them there; otherwise all their text moves to one at the start, or to the
    start of the first user message of a template that has no system role.

    Tools, calls and results that the template does not show are written out by `texts`: tools at the end of the system
    message, calls as the assistant's text, results as the user's. A turn with several calls becomes several turns where
    only one is shown. Messages of one role that follow each other become one where the template wants roles to alternate.
    """
    check_messages(messages)
    bridged = [_rename(message, capabilities) for message in messages]
    bridged = bridge_history(bridged, capabilities, texts)
    if tools and not capabilities.tools:
        bridged = _add_to_system(bridged, describe_tools(tools, texts))
    bridged = _place_system(bridged, capabilities)
    return _merge_repeated(bridged, capabilities)


def _rename(message: Message, capabilities: Capabilities) -> Message:
    if message.role == "function":
        return replace(message, role="tool")
    if message.role == "developer" and not capabilities.developer:
        return replace(message, role="system")
    return message


def _add_to_system(messages: list[Message], addition: Message) -> list[Message]:
    first, *rest = messages
    if not _is_system(first):
        return [addition, *messages]
    return [replace(first, content=SEPARATOR.join(filter(None, [first.text, addition.text]))), *rest]


def _place_system(messages: list[Message], capabilities: Capabilities) -> list[Message]:
    places = [index for index, message in enumerate(messages) if _is_system(message)]
    if not places:
        return messages
    alone = len(places) == len(messages)
    if not capabilities.system or (alone and capabilities.drops_lone_system):
        return _fold_into_user(messages)
    if _acceptable(messages, places, capabilities):
        return messages
    first = messages[places[0]]
    merged = replace(first, content=_system_text(messages))
    return [merged, *(message for message in messages if not _is_system(message))]


def _is_system(message: Message) -> bool:
    return message.role in ("system", "developer")


def _acceptable(messages: Sequence[Message], places: Sequence[int], capabilities: Capabilities) -> bool:
    n_leading = next((index for index, message in enumerate(messages) if not _is_system(message)), len(messages))
    if places[-1] >= n_leading and not capabilities.late_system:
        return False
    return n_leading <= 1 or capabilities.several_system


def _system_text(messages: Sequence[Message]) -> str:
    return SEPARATOR.join(message.text for message in messages if _is_system(message) and message.text)


def _fold_into_user(messages: Sequence[Message]) -> list[Message]:
    text = _system_text(messages)
    rest = [message for message in messages if not _is_system(message)]
    for index, message in enumerate(rest):
        if message.role == "user":
            joined = SEPARATOR.join(filter(None, [text, message.text]))
            return [*rest[:index], replace(message, content=joined), *rest[index + 1 :]]
    return [Message(role="user", content=text), *rest]


def _merge_repeated(messages: Sequence[Message], capabilities: Capabilities) -> list[Message]:
    merged: list[Message] = []
    for message in messages:
        if merged and _belong_together(merged[-1], message, capabilities):
            text = SEPARATOR.join(filter(None, [merged[-1].text, message.text]))
            merged[-1] = replace(message, content=text, reasoning_content=_joined_reasoning(merged[-1], message))
        else:
            merged.append(message)
    return merged


def _belong_together(before: Message, after: Message, capabilities: Capabilities) -> bool:
    if before.role != after.role:
        return False
    if after.role == "user":
        return not capabilities.repeated_user
    return after.role == "assistant" and not before.tool_calls and not capabilities.repeated_assistant


def _joined_reasoning(before: Message, after: Message) -> str | None:
    return SEPARATOR.join(filter(None, [before.reasoning_content, after.reasoning_content])) or None
