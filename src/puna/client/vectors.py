"""The public face of inputs that become vectors."""

from __future__ import annotations

from collections.abc import Callable

from puna.client.requests import EmbeddingRequest


class Vectors:
    """What a request's inputs become. Closing it ends the request at once, if it has not ended."""

    def __init__(self, request: EmbeddingRequest, abort: Callable[[], None]) -> None:
        self._request = request
        self._abort = abort

    @property
    def sizes(self) -> list[int]:
        """Tokens of each input; what media take is counted once an input is done."""
        return self._request.sizes

    async def all(self) -> list[bytes]:
        """Wait for every vector, in the order of the inputs, each as 32-bit floats. Raises a `PunaError` if there is none."""
        feed = self._request.feed
        try:
            await feed.wait()
        finally:
            await self.aclose()
        if feed.error is not None:
            raise feed.error
        return [vector for vector in self._request.vectors if vector is not None]

    async def aclose(self) -> None:
        """Stop what still runs. May be called more than once."""
        self._abort()
