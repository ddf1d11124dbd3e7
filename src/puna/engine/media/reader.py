"""Pictures and sounds on their way into a sequence: made ready on another thread, encoded once, kept."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

from puna.engine.media.encodings import Encodings, FloatArray
from puna.engine.media.runs import Run, Runs, ids
from puna.errors import InvalidRequest
from puna.llama.media import MediaFault, Part, Patch, Projector
from puna.media import MEDIA, Media, MediaFacts


class MediaReader:
    """Expands prompts and encodes what stands in them. One a worker."""

    def __init__(self, projector: Projector, identity: str, encodings: Encodings, *, most_at_once: int) -> None:
        """`identity` is a digest of the projector and of what it is told. `most_at_once` are the tokens of one step of the
        engine: vectors that see each other must fit into one."""
        self.encodings = encodings
        self.n_encoded = 0
        """Runs that were encoded; likewise the seconds that took."""
        self.seconds = 0.0
        self._projector = projector
        self._identity = identity.encode()
        self._most_at_once = most_at_once
        self._thread = ThreadPoolExecutor(1, "media")
        self._begun: dict[int, Future[list[tuple[str, list[Part]]]]] = {}

    @property
    def facts(self) -> MediaFacts:
        """What the server gets to know."""
        one = self._projector
        return MediaFacts(path=one.path, vision=one.vision, audio=one.audio, audio_rate=one.audio_rate)

    def begin(self, request: int, media: Iterable[Media]) -> Future[None]:
        """Make a request's media ready, on another thread; done when `finish` may be called."""
        work = self._thread.submit(self._expand, media)
        self._begun[request] = work
        done: Future[None] = Future()
        work.add_done_callback(lambda _: done.set_result(None))
        return done

    def forget(self, request: int) -> None:
        """A request is gone before its media were ready."""
        if work := self._begun.pop(request, None):
            work.cancel()

    def finish(self, request: int, prompts: Iterable[tuple[Iterable[int], int]]) -> list[tuple[list[int], Runs]]:
        """What `begin` has made ready, put into prompts, each with the number of media in it: its tokens, and its runs.

        Raises `InvalidRequest`, or `MediaFault` for what is not the caller's fault.
        """
        media = iter(self._begun.pop(request).result())
        return [self._put(prompt, islice(media, n)) for prompt, n in prompts]

    def _put(self, prompt: Iterable[int], media: Iterator[tuple[str, list[Part]]]) -> tuple[list[int], Runs]:
        tokens: list[int] = []
        runs: list[Run] = []
        position = 0
        for token in prompt:
            if token != MEDIA:
                tokens.append(token)
                position += 1
                continue
            digest, parts = next(media)
            for number, part in enumerate(parts):
                if not isinstance(part, Patch):
                    tokens += part
                    position += len(part)
                    continue
                self._check(part)
                name = b"%b;%b;%d;%d" % (self._identity, digest.encode(), number, part.n_tokens)
                runs.append(Run(len(tokens), position, part, name))
                tokens += ids(name, part.n_tokens)
                position += part.n_pos
        return tokens, Runs(tuple(runs))

    def _check(self, patch: Patch) -> None:
        if not patch.causal and patch.n_tokens > self._most_at_once:
            raise InvalidRequest(
                f"a picture of {patch.n_tokens} tokens must be read at once, and the server reads {self._most_at_once}: "
                "send a smaller one, or start the server with a larger -ub"
            )

    def _expand(self, media: Iterable[Media]) -> list[tuple[str, list[Part]]]:
        try:
            return [(one.digest, self._projector.expand(one)) for one in media]
        except MemoryError as error:
            raise MediaFault("there is no memory to make pictures or sound ready") from error

    def known(self, run: Run) -> FloatArray | None:
        """A run's vectors, if they were encoded before and are still kept."""
        return self.encodings.get(run.name)

    def encode(self, run: Run) -> FloatArray:
        """A run's vectors: (tokens, width). Raises `MediaFault`."""
        assert isinstance(run.patch, Patch)
        begin = time.perf_counter()
        vectors = self._projector.encode(run.patch)
        self.seconds += time.perf_counter() - begin
        self.n_encoded += 1
        self.encodings.put(run.name, vectors)
        return vectors


__all__ = ["MediaFault", "MediaReader"]
