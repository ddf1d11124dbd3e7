"""Frames on a stream socket: four bytes of length, little-endian, then one msgpack struct.

The worker's end is blocking and here; the server's end lives on its event loop and uses `encode` and `FrameDecoder`.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections import deque
from typing import Any, Generic, TypeVar

import msgspec

from puna.errors import ServerFault
from puna.ipc.frames import ToServer, ToWorker

MAX_FRAME = 256 * 1024 * 1024
"""Most bytes of one frame without its length."""

HEADER = 4
"""Bytes of the length."""

READ_SIZE = 256 * 1024

F = TypeVar("F")

_encoder = msgspec.msgpack.Encoder()


class FrameError(ServerFault):
    """The bytes on a channel are no frame, or a frame is too large; the channel cannot be used any more."""


def encode(frame: ToWorker | ToServer) -> bytes:
    """Return the bytes of one frame, its length first. Raises FrameError when it is over `MAX_FRAME`."""
    body = _encoder.encode(frame)
    if len(body) > MAX_FRAME:
        raise FrameError(f"a frame of {len(body)} bytes is over the limit of {MAX_FRAME}")
    return len(body).to_bytes(HEADER, "little") + body


class FrameDecoder(Generic[F]):
    """Cuts a stream of bytes, in pieces of any size, into frames of one (union) type."""

    def __init__(self, kind: Any) -> None:
        self._decoder: msgspec.msgpack.Decoder[F] = msgspec.msgpack.Decoder(kind)
        self._buffer = bytearray()
        self._error: FrameError | None = None

    @property
    def partial(self) -> bool:
        """Whether the bytes so far end within a frame."""
        return bool(self._buffer)

    def feed(self, data: bytes) -> list[F]:
        """Return the frames that `data` completes.

        Raises FrameError on a length over `MAX_FRAME` and on a body that is no frame of the type; from then on always.
        """
        if self._error is not None:
            raise self._error
        buffer = self._buffer
        buffer += data
        frames: list[F] = []
        at = 0
        try:
            with memoryview(buffer) as view:
                while len(view) - at >= HEADER:
                    size = int.from_bytes(view[at : at + HEADER], "little")
                    if size > MAX_FRAME:
                        raise FrameError(f"a frame of {size} bytes is announced, the limit is {MAX_FRAME}")
                    end = at + HEADER + size
                    if end > len(view):
                        break
                    # Copied: a decoder that fails would keep the view, and with it the buffer, from being released.
                    frames.append(self._decoder.decode(bytes(view[at + HEADER : end])))
                    at = end
        except msgspec.DecodeError as error:
            self._error = FrameError(f"bad frame on the channel: {error}")
            raise self._error from error
        except FrameError as error:
            self._error = error
            raise
        del buffer[:at]
        return frames


class WorkerChannel:
    """The worker's end: blocking, one reader, any number of writers."""

    def __init__(self, fd: int) -> None:
        """Take over `fd`, a connected stream socket."""
        self._socket = socket.socket(fileno=fd)
        self._socket.setblocking(True)
        self._socket.set_inheritable(False)
        self._decoder: FrameDecoder[ToWorker] = FrameDecoder(ToWorker)
        self._frames: deque[ToWorker] = deque()
        self._sending = threading.Lock()

    def send(self, frame: ToServer) -> None:
        """Send one frame whole, from any thread. Raises OSError when the server is gone."""
        data = encode(frame)
        with self._sending:
            self._socket.sendall(data)

    def recv(self) -> ToWorker | None:
        """Wait for the next frame; None when the server is gone. Raises FrameError on garbage."""
        while not self._frames:
            try:
                data = self._socket.recv(READ_SIZE)
            except OSError:
                return None
            if not data:
                return None
            self._frames.extend(self._decoder.feed(data))
        return self._frames.popleft()

    def poll(self, timeout: float = 0.0) -> bool:
        """Wait up to `timeout` seconds; whether bytes of a frame, or the end, are there to be read by `recv`."""
        if self._frames:
            return True
        return bool(select.select([self._socket], [], [], timeout)[0])

    def fileno(self) -> int:
        """The socket's descriptor, to wait for it among others."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the socket; the server sees the end of the stream. A `recv` in another thread returns None."""
        # It fails where the other end was faster: nothing is left to shut down then.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
