"""What a worker was doing when it died, in memory that outlives it.

The worker writes a line before each risky act; the server reads the last whole one after the death. Two sides are
written in turn, each with a checksum, and one byte says which is the newer: a write that was cut short, or memory that
a dying engine scribbled over, is noticed and the older side is used.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
import zlib
from array import array
from collections.abc import Sequence
from typing import Literal

import msgspec

Phase = Literal["load", "decode", "sample", "constrain", "idle", "unknown", "calibrate", "encode", "prepare"]
"""`unknown` is only ever read: nothing whole is left to say what happened."""

PHASES: tuple[Phase, ...] = ("load", "decode", "sample", "constrain", "idle", "unknown", "calibrate", "encode", "prepare")
CODES = {phase: code for code, phase in enumerate(PHASES)}

MAX_IDS = 4096
"""Requests beyond these, in one batch, are not written down."""

COUNTER = struct.Struct("Q")
HEAD = struct.Struct("IIIxxxx")
"""Checksum of the rest, code of the phase, number of ids; the ids follow, eight bytes each."""

COUNTER_AT = 8
SIDES_AT = 16
SIDE_SIZE = HEAD.size + MAX_IDS * 8
SIZE = SIDES_AT + 2 * SIDE_SIZE


class Moment(msgspec.Struct, frozen=True):
    """The last thing a worker wrote down."""

    phase: Phase
    ids: tuple[int, ...]
    """Requests that took part."""
    n_decoded: int
    """Successful decodes since the worker's start."""


class BlackBox:
    """Both ends of the shared memory: the server creates it, the worker opens it by its inherited descriptor."""

    def __init__(self, fd: int) -> None:
        """Map the memory behind `fd` and take `fd` over."""
        self.fd = fd
        self._map = mmap.mmap(fd, SIZE)
        self._side = self._map[0] & 1
        (self._n_decoded,) = COUNTER.unpack_from(self._map, COUNTER_AT)

    @classmethod
    def create(cls) -> BlackBox:
        """Make a new one, in phase `load`, over memory that has no name in any file system."""
        if hasattr(os, "memfd_create"):
            # No disk behind it: writing a page back must never hold up a decode.
            fd = os.memfd_create("puna-blackbox", os.MFD_CLOEXEC)
        else:
            with tempfile.TemporaryFile() as file:
                fd = os.dup(file.fileno())
        os.ftruncate(fd, SIZE)
        box = cls(fd)
        box.record("load", ())
        return box

    def record(self, phase: Phase, ids: Sequence[int]) -> None:
        """Write down what is about to be done, and for which requests."""
        body = array("q", ids[:MAX_IDS]).tobytes()
        side = self._side ^ 1
        at = SIDES_AT + side * SIDE_SIZE
        code = CODES[phase]
        size = len(body) >> 3
        HEAD.pack_into(self._map, at, zlib.crc32(body, code << 16 | size), code, size)
        start = at + HEAD.size
        self._map[start : start + len(body)] = body
        self._map[0] = side
        self._side = side

    def decoded(self) -> None:
        """Count one successful decode."""
        self._n_decoded += 1
        COUNTER.pack_into(self._map, COUNTER_AT, self._n_decoded)

    def moment(self) -> Moment:
        """Return the newest whole record; phase `unknown` when there is none."""
        (n_decoded,) = COUNTER.unpack_from(self._map, COUNTER_AT)
        newest = self._map[0] & 1
        for side in (newest, newest ^ 1):
            found = self._read(side)
            if found is not None:
                return Moment(found[0], found[1], n_decoded)
        return Moment("unknown", (), n_decoded)

    def _read(self, side: int) -> tuple[Phase, tuple[int, ...]] | None:
        at = SIDES_AT + side * SIDE_SIZE
        checksum, code, size = HEAD.unpack_from(self._map, at)
        if code >= len(PHASES) or size > MAX_IDS:
            return None
        start = at + HEAD.size
        body = self._map[start : start + size * 8]
        if zlib.crc32(body, code << 16 | size) != checksum:
            return None
        return PHASES[code], tuple(array("q", body))

    def close(self) -> None:
        """Give the memory and the descriptor back; a second call does nothing."""
        if self.fd >= 0:
            self._map.close()
            os.close(self.fd)
            self.fd = -1
