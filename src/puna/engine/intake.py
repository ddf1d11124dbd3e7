"""What has to happen to a request before it can queue: its media made ready, its grammar compiled."""

from __future__ import annotations

from puna.engine.arena import Arena
from puna.engine.compiling import Compiling
from puna.engine.constraint import ConstraintFactory
from puna.engine.media.reader import MediaFault, MediaReader
from puna.engine.outbox import Outbox
from puna.engine.sequence import Sequence
from puna.errors import InvalidRequest


class Intake:
    """Keeps requests while other threads work for them. What cannot be made ready ends here, and the outbox says why."""

    def __init__(self, constraints: ConstraintFactory, media: MediaReader | None, arena: Arena, outbox: Outbox) -> None:
        self.waiting = Compiling()
        """The requests that are not ready."""
        self._constraints = constraints
        self._media = media
        self._arena = arena
        self._outbox = outbox

    def add(self, sequence: Sequence) -> Sequence | None:
        """Take a new request; give it back if there is nothing to do for it."""
        media = sequence.generation.media
        if not media:
            return self._compile(sequence)
        if self._media is not None:
            self.waiting.add(sequence, self._media.begin(sequence.id, media))
        else:
            self._outbox.failed(sequence, "the model takes text only", "invalid")
        return None

    def remove(self, request: int) -> None:
        """Forget a request."""
        self.waiting.remove(request)
        if self._media is not None:
            self._media.forget(request)

    def take_ready(self, *, patient: bool) -> list[Sequence]:
        """Requests that can queue now; if `patient`, wait a moment for one."""
        done = self.waiting.take_done(patient=patient)
        ready = (self._expand(sequence) if sequence.awaits_media else sequence for sequence in done)
        return [sequence for sequence in ready if sequence is not None]

    def _compile(self, sequence: Sequence) -> Sequence | None:
        constraint = sequence.generation.constraint
        if constraint is None or self._constraints.knows(constraint):
            return sequence
        self.waiting.add(sequence, self._constraints.compile(constraint))
        return None

    def _expand(self, sequence: Sequence) -> Sequence | None:
        """Put media into a prompt that has them ready now."""
        assert self._media is not None
        try:
            wanted = sequence.generation
            ((tokens, runs),) = self._media.finish(sequence.id, [(wanted.prompt, len(wanted.media))])
        except InvalidRequest as error:
            self._outbox.failed(sequence, error.message, "invalid")
        except MediaFault as error:
            self._outbox.failed(sequence, str(error), "fault")
        else:
            sequence.expand(tokens, runs)
            room = self._arena.limit - sequence.n_prompt
            if room > 0 or (room == 0 and sequence.generation.max_tokens == 0):
                return self._compile(sequence)
            self._outbox.too_long(sequence, self._arena.limit)
        return None
