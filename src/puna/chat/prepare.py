"""Bridging the difference between what clients send and what a template takes."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from puna.chat.capabilities import Capabilities
from puna.chat.messages import Message, check_messages

_SEPARATOR = "\n\n"


def prepare(messages: Sequence[Message], capabilities: Capabilities) -> list[Message]:
    """The messages as the template can take them. Raises `InvalidRequest` for unknown roles and for no messages at all.

    `developer` becomes `system`, and `function` becomes `tool`, where the template does not know them. System messages
    stay where they are if the template shows them there; otherwise all their text moves to one at the start, or to the
    start of the first user message of a template that has no system role. Which order roles may have is the template's
    own business.
    """
    check_messages(messages)
    bridged = [_rename(message, capabilities) for message in messages]
    places = [index for index, message in enumerate(bridged) if _is_system(message)]
    if not places:
        return bridged
    alone = len(places) == len(bridged)
    if not capabilities.system or (alone and capabilities.drops_lone_system):
        return _fold_into_user(bridged)
    if _acceptable(bridged, places, capabilities):
        return bridged
    first = bridged[places[0]]
    merged = replace(first, content=_system_text(bridged))
    return [merged, *(message for message in bridged if not _is_system(message))]


def _rename(message: Message, capabilities: Capabilities) -> Message:
    if message.role == "function":
        return replace(message, role="tool")
    if message.role == "developer" and not capabilities.developer:
        return replace(message, role="system")
    return message


def _is_system(message: Message) -> bool:
    return message.role in ("system", "developer")


def _acceptable(messages: Sequence[Message], places: Sequence[int], capabilities: Capabilities) -> bool:
    n_leading = next((index for index, message in enumerate(messages) if not _is_system(message)), len(messages))
    if places[-1] >= n_leading and not capabilities.late_system:
        return False
    return n_leading <= 1 or capabilities.several_system


def _system_text(messages: Sequence[Message]) -> str:
    return _SEPARATOR.join(message.text for message in messages if _is_system(message) and message.text)


def _fold_into_user(messages: Sequence[Message]) -> list[Message]:
    text = _system_text(messages)
    rest = [message for message in messages if not _is_system(message)]
    for index, message in enumerate(rest):
        if message.role == "user":
            joined = _SEPARATOR.join(filter(None, [text, message.text]))
            return [*rest[:index], replace(message, content=joined), *rest[index + 1 :]]
    return [Message(role="user", content=text), *rest]
