"""Requests that were admitted and have not ended: what to send for each to a worker, the first one or a later one."""

from __future__ import annotations

import time
from array import array
from collections.abc import Sequence

from puna.client.assembly import Assembly
from puna.client.stream import Feed
from puna.errors import InvalidRequest, PunaError, ServerFault
from puna.ipc.frames import Embed, Pooled, Submit
from puna.types import Media, ModelFacts


class GenerationRequest:
    """A text in the making."""

    def __init__(self, assembly: Assembly) -> None:
        self.assembly = assembly
        self.feed = Feed()
        self.began = time.monotonic()

    def frame(self, id: int, facts: ModelFacts) -> Submit | None:
        """What starts it, or goes on with it; None if it has just ended because there is nothing left to do."""
        if self.assembly.fits(facts.n_ctx):
            return self.assembly.submit(id)
        # A worker died between the last token and the word that it was the last.
        self.feed.put((self.assembly.limit(),))
        return None

    @property
    def media_bytes(self) -> int:
        """Bytes of pixels and samples that it holds."""
        return sum(len(one.data) for one in self.assembly.generation.media)

    def close(self, error: PunaError | None) -> None:
        """It has ended."""
        self.assembly.drop_media()
        self.feed.close(error)


class EmbeddingRequest:
    """Inputs that become vectors, in any order."""

    def __init__(
        self,
        inputs: Sequence[Sequence[int]],
        lora: Sequence[tuple[int, float]] = (),
        media: Sequence[Sequence[Media]] = (),
    ) -> None:
        """`lora` are (adapter id, scale) pairs; `media` is nothing, or what each input has at its `MEDIA`."""
        self.began = time.monotonic()
        self.vectors: list[bytes | None] = [None] * len(inputs)
        """What each input became, as 32-bit floats; None until it is there."""
        self.sizes = [len(tokens) for tokens in inputs]
        """Tokens of each input, with all that its media take once it is done."""
        self.n_done = 0
        """Tokens of the inputs that are done."""
        self.error: PunaError | None = None
        self.feed = Feed()
        """Closed when it has ended."""
        self._lora = tuple(lora)
        self._media = [tuple(one) for one in media]
        self._inputs = [array("i", tokens).tobytes() for tokens in inputs]
        self._parts: dict[int, list[bytes]] = {}
        self._left = len(inputs)

    @property
    def media_bytes(self) -> int:
        """Bytes of pixels and samples that it holds."""
        return sum(len(one.data) for own in self._media for one in own)

    @property
    def ended(self) -> bool:
        """Whether every vector is there, or none will come any more."""
        return self._left == 0 or self.error is not None

    def frame(self, id: int, facts: ModelFacts) -> Embed:
        """What starts it, or goes on with the inputs that are not done."""
        self._parts.clear()
        left = tuple(index for index, vector in enumerate(self.vectors) if vector is None)
        media = tuple(self._media[index] for index in left) if any(self._media) else ()
        return Embed(id=id, inputs=tuple(self._inputs[index] for index in left), indices=left, lora=self._lora, media=media)

    def take(self, pooled: Pooled) -> None:
        """Take what a step brought."""
        if pooled.error:
            self.error = InvalidRequest(pooled.error) if pooled.error_kind == "invalid" else ServerFault(pooled.error)
            return
        for index, vector in zip(pooled.indices, pooled.vectors, strict=True):
            if pooled.part:
                self._parts.setdefault(index, []).append(vector)
            elif self.vectors[index] is None:
                self.sizes[index] = pooled.n_tokens or self.sizes[index]
                self.vectors[index] = b"".join((*self._parts.pop(index, ()), vector))
                self.n_done += len(self._inputs[index]) // 4
                self._left -= 1

    def close(self, error: PunaError | None) -> None:
        """It has ended."""
        self.feed.close(error)
