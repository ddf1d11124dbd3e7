"""One request's outputs made into chunks: pure, so that any grouping of tokens into steps can be tested."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from puna.client.text import TextStream
from puna.errors import ContextExceeded, InvalidRequest, PunaError, ServerFault
from puna.ipc.frames import Output, Submit
from puna.types import Chunk, Generation, Progress, StopType, Timings, TokenProb


class Assembly:
    """Holds what a request has produced and turns each output into at most one chunk, besides those that tell of the prompt.

    Tokens and probabilities are in exactly one chunk each; without `every_token` they wait for the text they belong to.
    """

    def __init__(
        self,
        generation: Generation,
        piece: Callable[[int], bytes],
        *,
        every_token: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`piece` gives a token's bytes, `clock` the time in seconds."""
        self.generation = generation
        self.produced: list[int] = []
        """Every token so far."""
        self.end_thinking = False
        """Whether it may think no further, whichever worker has it."""
        self.ended = False
        self.error: PunaError | None = None
        """Set when it ended with an error."""
        self._piece = piece
        self._every_token = every_token
        self._clock = clock
        self._text = TextStream(generation.stop, generation.n_indent)
        self._tokens: list[int] = []
        self._probs: list[TokenProb] = []
        self._slot = -1
        self._drafted = self._draft_accepted = 0
        self._first: Timings | None = None
        self._first_at = 0.0
        self._resumed = False
        self._stated: Timings | None = None
        self._late = False
        """Whether a line ended after all the time there was."""
        self._truncated = False
        self._processed = -1
        """Prompt tokens of the last progress that was reported."""
        self._n_prompt = len(generation.prompt)
        """Tokens of the prompt, with all that its media take once a worker has said so."""
        self._scored = 0
        """Prompt probabilities that were passed on, by whatever worker."""
        self._rescored = 0
        """Prompt probabilities that the present worker has sent."""

    @property
    def stopped(self) -> bool:
        """Whether its text ended it: a stop string, an indent, or a line's end past the time. The worker has to be told."""
        return self._late or self._text.outdented or self._text.stopped is not None

    @property
    def length(self) -> int:
        """Tokens so far, the prompt included."""
        return self._n_prompt + len(self.produced)

    def drop_media(self) -> None:
        """Forget pictures and sounds: it is over, and nobody will send them again."""
        if self.generation.media:
            media = tuple(msgspec.structs.replace(one, data=b"") for one in self.generation.media)
            self.generation = msgspec.structs.replace(self.generation, media=media)

    def fits(self, n_ctx: int) -> bool:
        """Whether it may get further tokens, so that a new worker has something to do for it."""
        if not self.produced:
            return True
        limit = self.generation.max_tokens
        room = self.generation.context_shift or self.length <= n_ctx
        return room and not 0 < limit <= len(self.produced)

    def submit(self, id: int) -> Submit:
        """Return the frame that starts it, or goes on with it where it is now."""
        self._resumed = bool(self.produced)
        self._rescored = 0
        return Submit(id=id, generation=self.generation, produced=tuple(self.produced), end_thinking=self.end_thinking)

    def feed(self, output: Output) -> list[Chunk]:
        """Take one output; return the chunks that it makes, in order."""
        chunks: list[Chunk] = []
        self._slot = output.slot if output.slot >= 0 else self._slot
        if output.timings is not None:
            self._stated = output.timings
            self._n_prompt = output.timings.cache_n + output.timings.prompt_n
        self._truncated |= output.truncated
        self._drafted += output.drafted
        self._draft_accepted += output.draft_accepted
        if output.prompt_probs:
            chunks += self._score(output.prompt_probs)
        if output.progress is not None:
            chunks += self._report(output.progress)
        text = self._take(output)
        if output.end == "error":
            chunks += self._some(text + self._text.finish())
            self.fail(self._error(output))
            return chunks
        if output.end != "none" or self.stopped:
            chunks.append(self._last(text, output.end, output.timings))
        else:
            chunks += self._some(text)
        return chunks

    def _error(self, output: Output) -> PunaError:
        if output.error_kind == "length":
            return ContextExceeded(*output.lengths)
        return InvalidRequest(output.error) if output.error_kind == "invalid" else ServerFault(output.error)

    def limit(self) -> Chunk:
        """End it because it has all its tokens."""
        return self._last("", "limit", None)

    def fail(self, error: PunaError) -> None:
        """End it with an error, if it goes on."""
        if not self.ended:
            self.ended = True
            self.error = error

    def _take(self, output: Output) -> str:
        """Take tokens up to the one that ends the text; return the text they release."""
        if not output.tokens:
            return ""
        if self._first is None:
            self._first = output.timings or Timings(prompt_n=len(self.generation.prompt))
            self._first_at = self._clock()
        text = ""
        taken = 0
        for token in output.tokens:
            taken += 1
            released = self._text.feed(self._piece(token))
            text += released
            if self.stopped:
                break
            if "\n" in released and self._overdue:
                self._late = True
                break
        tokens = output.tokens[:taken]
        self.produced += tokens
        self._tokens += tokens
        self._probs += output.probs[:taken]
        return text

    def _some(self, text: str) -> list[Chunk]:
        if not text and not (self._every_token and self._tokens):
            return []
        return [self._chunk(text, self._running())]

    def _last(self, text: str, end: StopType, stated: Timings | None) -> Chunk:
        # The worker's own account covers neither a cut in mid-step nor what a worker before it has done.
        exact = stated if not self.stopped and not self._resumed else None
        text += self._text.finish()
        self.ended = True
        word = ""
        if self._late or self._text.outdented:
            end = "limit"
        elif self._text.stopped is not None:
            end, word = "word", self._text.stopped
        return msgspec.structs.replace(
            self._chunk(text, exact or self._running()), stop_type=end, stopping_word=word, truncated=self._truncated
        )

    @property
    def _overdue(self) -> bool:
        limit = self.generation.t_max_predict_ms
        return limit > 0 and (self._clock() - self._first_at) * 1000 > limit

    def _report(self, progress: Progress) -> list[Chunk]:
        # A new worker reads the prompt from its beginning: that is told once it gets further than the last one.
        if self.produced or progress.processed <= self._processed:
            return []
        self._processed = progress.processed
        return [Chunk(progress=progress, slot=self._slot)]

    def _score(self, probs: tuple[TokenProb, ...]) -> list[Chunk]:
        # A new worker sends all of them again, and then those of the tokens produced so far as if they were prompt.
        start, self._rescored = self._rescored, self._rescored + len(probs)
        fresh = probs[max(0, self._scored - start) : max(0, len(self.generation.prompt) - 1 - start)]
        self._scored += len(fresh)
        return [Chunk(prompt_probs=fresh, slot=self._slot)] if fresh else []

    def _chunk(self, text: str, timings: Timings) -> Chunk:
        if self._drafted:  # the worker tells at the end only, and of itself alone
            timings = msgspec.structs.replace(timings, draft_n=self._drafted, draft_n_accepted=self._draft_accepted)
        chunk = Chunk(text=text, tokens=tuple(self._tokens), probs=tuple(self._probs), slot=self._slot, timings=timings)
        self._tokens.clear()
        self._probs.clear()
        return chunk

    def _running(self) -> Timings:
        """The figures as seen from here, which go on across workers."""
        if self._first is None:
            return self._stated or Timings()
        if self._stated is not None and not self._resumed and self._stated.predicted_n == len(self.produced):
            return self._stated
        return Timings(
            cache_n=self._first.cache_n,
            prompt_n=self._first.prompt_n,
            prompt_ms=self._first.prompt_ms,
            queue_ms=self._first.queue_ms,
            predicted_n=len(self.produced),
            predicted_ms=self._first.predicted_ms + (self._clock() - self._first_at) * 1000,
        )
