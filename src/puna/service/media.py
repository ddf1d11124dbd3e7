"""Pictures and sounds in prompts: loaded, marked in what a template is given, and found again in what it writes."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from puna.chat import MarkPart, MediaPart, Message
from puna.errors import InvalidRequest
from puna.mediafiles.loader import MediaLoader, Wanted
from puna.types import Media, MediaFacts

MARKER = f"<__media_{secrets.token_urlsafe(24)}__>"
"""What stands for a picture or a sound in prompts that clients write themselves. Another one in every process, so that text from
elsewhere does not happen to have it."""

COMMON_MARKER = "<__media__>"
"""The same for clients that know none but the engine's own; it counts in prompts that do not have `MARKER`."""


@dataclass(frozen=True)
class Mark:
    """A text of letters and digits that occurs nowhere else, and what it stands for."""

    text: str
    part: MediaPart
    media: Media | None = None
    """None where it only has to be shown that something is there."""


async def mark_media(
    messages: Sequence[Message], loader: MediaLoader, facts: MediaFacts | None, *, load: bool = True
) -> tuple[tuple[Message, ...], tuple[Mark, ...]]:
    """The messages with marks in the place of pictures and sounds, and these. Raises `InvalidRequest` or `NotSupported` that
    names the field. Without `load` nothing is fetched or decoded."""
    parts = [part for message in messages for part in message.media]
    if not parts:
        return tuple(messages), ()
    wanted = [as_wanted(part) for part in parts]
    if load:
        found: list[tuple[Media, ...]] = await loader.load(wanted, facts)
    else:
        for one in wanted:
            loader.check(one, facts)
        found = [()] * len(parts)
    secret = secrets.token_hex(8)
    marks: list[Mark] = []
    by_part: list[tuple[MarkPart, ...]] = []
    for part, all_media in zip(parts, found, strict=True):
        own = [Mark(f"media{secret}n{len(marks) + index}z", part, media) for index, media in enumerate(all_media or [None])]
        marks += own
        by_part.append(tuple(MarkPart(mark.text) for mark in own))
    rest = iter(by_part)
    return tuple(_marked(message, rest) for message in messages), tuple(marks)


def _marked(message: Message, rest: Iterator[tuple[MarkPart, ...]]) -> Message:
    if not message.media or not isinstance(message.content, tuple):
        return message
    parts = [next(rest) if isinstance(part, MediaPart) else (part,) for part in message.content]
    return replace(message, content=tuple(one for some in parts for one in some))


def as_wanted(part: MediaPart) -> Wanted:
    """The part as the loader knows it."""
    return Wanted(part.kind, part.source, part.field, part.at)


def check_marks(text: str, marks: Sequence[Mark]) -> None:
    """Raise `InvalidRequest` that names the first picture or sound that the template left out."""
    for mark in marks:
        if mark.text not in text:
            raise InvalidRequest(f"Field '{mark.part.at}': the model's chat template leaves this out", param=mark.part.at)


def split_at(text: str, marks: Mapping[str, Mark]) -> list[str | Mark]:
    """The text in pieces, with what stands between them."""
    if not marks:
        return [text]
    pieces = re.split(f"({'|'.join(map(re.escape, marks))})", text)
    return [marks.get(piece, piece) for piece in pieces if piece]


def shown(text: str, marks: Sequence[Mark]) -> str:
    """The text with the marker that clients know in the place of every mark."""
    for mark in marks:
        text = text.replace(mark.text, MARKER)
    return text


def split_at_markers(text: str, n: int, *, field: str) -> list[str]:
    """The n + 1 texts around n markers. Raises `InvalidRequest` where there are more or fewer of them."""
    pieces = text.split(MARKER if MARKER in text else COMMON_MARKER)
    if len(pieces) != n + 1:
        raise InvalidRequest(
            f"Field '{field}': {len(pieces) - 1} media markers for {n} pictures and sounds (GET /props tells the marker)",
            param=field,
        )
    return pieces
