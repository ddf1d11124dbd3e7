"""Replies that are kept, so that the next request can go on where they ended."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import msgspec

from puna.service.chat import Message

MAX_ENTRIES = 1024
MAX_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Kept:
    """A reply, and the conversation that it is the end of, without instructions: they hold for one request."""

    reply: bytes
    messages: tuple[Message, ...]
    size: int


class ResponseStore:
    """A bounded memory of replies; the least recently used ones go first. Nothing of it outlives the server."""

    def __init__(self, *, max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self.n_bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def put(self, id: str, reply: bytes, messages: tuple[Message, ...]) -> None:
        """Keep a reply, if it is not too large to be kept at all."""
        self.delete(id)
        size = len(reply) + len(msgspec.msgpack.encode(messages))
        if size > self._max_bytes:
            return
        self._kept[id] = Kept(reply, messages, size)
        self.n_bytes += size
        while len(self._kept) > self._max_entries or self.n_bytes > self._max_bytes:
            self.delete(next(iter(self._kept)))

    def get(self, id: str) -> Kept | None:
        """A reply; it counts as used."""
        found = self._kept.get(id)
        if found is not None:
            self._kept.move_to_end(id)
        return found

    def delete(self, id: str) -> bool:
        """Forget a reply; whether there was one."""
        found = self._kept.pop(id, None)
        if found is not None:
            self.n_bytes -= found.size
        return found is not None
