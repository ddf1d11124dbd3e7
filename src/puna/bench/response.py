"""HTTP/1.1 responses and server-sent events from bytes as they come. Pure: feed() and finish()."""

from __future__ import annotations


class BrokenResponse(Exception):
    """The bytes are not a response, or end before one does."""


class ResponseParser:
    """Takes a response's bytes apart. `status` and `headers` are there as soon as the head has been fed."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        """Lower-case names."""
        self.done = False
        self._buffer = b""
        self._left: int | None = None
        """Bytes until the end of the body or of the current chunk; None while that is unknown or has no bound."""
        self._chunked = False
        self._in_trailer = False

    def feed(self, data: bytes) -> bytes:
        """The body's bytes that became known."""
        if self.status == 0:
            head, separator, data = (self._buffer + data).partition(b"\r\n\r\n")
            if not separator:
                self._buffer = head
                return b""
            self._buffer = b""
            self._read_head(head)
        if self.done:
            return b""
        return self._feed_chunks(data) if self._chunked else self._feed_plain(data)

    def finish(self) -> None:
        """Call when the connection has ended. Raises `BrokenResponse` if the response had not."""
        if self.status == 0:
            raise BrokenResponse("the server closed the connection before it answered")
        if not self.done and (self._chunked or self._left is not None):
            raise BrokenResponse("the server closed the connection in the middle of its answer")
        self.done = True

    def _read_head(self, head: bytes) -> None:
        first, *lines = head.decode("latin-1").split("\r\n")
        words = first.split(" ", 2)
        if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdigit():
            raise BrokenResponse(f"not an HTTP response: {first[:80]!r}")
        for line in lines:
            name, _, value = line.partition(":")
            self.headers[name.strip().lower()] = value.strip()
        self.status = int(words[1])
        self._chunked = "chunked" in self.headers.get("transfer-encoding", "").lower()
        length = self.headers.get("content-length", "")
        if not self._chunked and length.isdigit():
            self._left = int(length)
            self.done = self._left == 0

    def _feed_plain(self, data: bytes) -> bytes:
        if self._left is None:
            return data
        body = data[: self._left]
        self._left -= len(body)
        self.done = self._left == 0
        return body

    def _feed_chunks(self, data: bytes) -> bytes:
        data = self._buffer + data
        body = bytearray()
        while data and not self.done:
            if self._left is None:
                line, separator, rest = data.partition(b"\r\n")
                if not separator:
                    break
                data = rest
                self._read_chunk_line(line)
            else:
                # a chunk's bytes are followed by an empty line, which `_left` counts too
                piece = data[: self._left]
                data = data[len(piece) :]
                body += piece[: max(0, self._left - 2)]
                self._left -= len(piece)
                if self._left == 0:
                    self._left = None
        self._buffer = data
        return bytes(body)

    def _read_chunk_line(self, line: bytes) -> None:
        if self._in_trailer:
            self.done = not line
            return
        try:
            size = int(line.split(b";")[0], 16)
        except ValueError:
            raise BrokenResponse(f"not the length of a chunk: {line[:40]!r}") from None
        self._in_trailer = size == 0
        self._left = size + 2 if size else None


class EventParser:
    """Takes the `data` of server-sent events out of a body."""

    def __init__(self) -> None:
        self._buffer = b""
        self._data: list[str] = []

    def feed(self, data: bytes) -> list[str]:
        """The data of every event that was completed."""
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        events: list[str] = []
        for raw in lines:
            line = raw.rstrip(b"\r").decode("utf-8", "replace")
            if line.startswith("data:"):
                self._data.append(line[5:].removeprefix(" "))
            elif not line and self._data:
                events.append("\n".join(self._data))
                self._data = []
        return events

    def finish(self) -> list[str]:
        """An event that the body's end completes."""
        return self.feed(b"\n\n")
