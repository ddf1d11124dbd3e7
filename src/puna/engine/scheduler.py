"""Who runs, who waits, and what goes into the next step. Pure bookkeeping: no clock, no memory, no model."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

from puna.engine.adapters import NO_ADAPTERS, AdapterSet
from puna.engine.media.runs import Run
from puna.engine.sequence import Sequence
from puna.engine.slots import SlotBoard

FIXED_CHUNK = 64
"""Prompt tokens that a deterministic request reads in a step."""

SCORED_CHUNK = 64
"""Most prompt tokens in a step whose probabilities are wanted: each takes a row of logits over the vocabulary."""

TURN = 4
"""Most steps that adapters get before others have theirs: a change of adapters costs the engine about as much as a step."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a step: the next `count` pending tokens of a sequence."""

    sequence: Sequence
    count: int
    draft: tuple[int, ...] = ()
    """Tokens that may follow: they are computed too, and stay if they turn out right."""

    @property
    def reaches_end(self) -> bool:
        """Whether nothing is pending after it, so that its last row's logits choose a token."""
        return self.count == self.sequence.n_pending


@dataclass(frozen=True, slots=True)
class Plan:
    """One step: decoding sequences and prefill pieces, ordered by seat."""

    pieces: tuple[Piece, ...]
    n_decoding: int
    n_prefill: int
    """Prompt tokens in it."""
    adapters: AdapterSet = NO_ADAPTERS
    """What applies to all of it."""
    run: Run | None = None
    """The run that it reads vectors of, of one sequence; None for a step of tokens."""

    @property
    def n_drafted(self) -> int:
        """Drafted tokens in it."""
        return sum(len(piece.draft) for piece in self.pieces)

    def without_drafts(self) -> Plan:
        """The same step with nothing drafted."""
        return replace(self, pieces=tuple(replace(piece, draft=()) for piece in self.pieces))


class Scheduler:
    """A queue of waiting requests and a set of running ones, at most one a seat."""

    def __init__(self, n_seats: int, *, can_cut: bool = True, share_at_least: int = 32, slots: SlotBoard | None = None) -> None:
        """`slots` are the public ones, as many as there are seats unless given."""
        self.n_seats = n_seats
        self.slots = slots or SlotBoard(n_seats)
        self.can_cut = can_cut
        self._share_at_least = share_at_least
        self._turns: list[Hashable] = []
        """Groups of sequences that take turns, the one whose turn it is first."""
        self._turn: tuple[Hashable, int] = (None, 0)
        """Whose turn it was last, and how many steps it has lasted."""
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        """In order of admission."""

    # queue

    def add(self, sequence: Sequence) -> None:
        """Queue a new request."""
        self.waiting.append(sequence)

    def find(self, request: int) -> Sequence | None:
        """The waiting or running sequence of a request."""
        return next((s for s in (*self.running, *self.waiting) if s.id == request), None)

    def remove(self, sequence: Sequence) -> None:
        """Take a sequence out, whether it waits or runs. Its seat and slot are free at once."""
        if sequence in self.running:
            self.running.remove(sequence)
        else:
            self.waiting.remove(sequence)
        for other in self.running:
            if other.leader is sequence:
                other.leader = None
        sequence.leader = None

    def admit(self) -> Iterator[Sequence]:
        """Give seats to waiting requests, as long as there are any; each is yielded once it has one.

        In order, but a request that wants a slot which is busy lets others pass.
        """
        for sequence in list(self.waiting):
            if len(self.running) >= self.n_seats:
                return
            slot = sequence.slot if sequence.internal else self._choose_slot(sequence)
            if slot is None:
                continue
            self.waiting.remove(sequence)
            taken = {other.seat for other in self.running}
            sequence.seat = next(seat for seat in range(self.n_seats) if seat not in taken)
            sequence.slot = slot
            self.running.append(sequence)
            yield sequence

    def _choose_slot(self, sequence: Sequence) -> int | None:
        busy = {other.slot for other in self.running}
        return self.slots.choose(sequence.generation.id_slot, sequence.tokens, busy)

    @property
    def n_decoding(self) -> int:
        """Running sequences of which everything but the newest tokens is in memory."""
        return sum(sequence.decoding for sequence in self.running)

    def surplus(self) -> list[Sequence]:
        """Running sequences beyond the seats there are, the latest admitted first."""
        return self.running[self.n_seats :][::-1]

    def preempt(self, sequence: Sequence) -> None:
        """Send a running sequence back to the head of the queue; what it had produced stays with it."""
        self.remove(sequence)
        sequence.n_fresh = 0
        sequence.fetching, sequence.arriving = None, 0
        sequence.seat = -1
        if not sequence.internal:
            sequence.slot = -1
        sequence.n_done = 0
        sequence.encoded = None
        sequence.moved = sequence.rearranged = False
        self.waiting.appendleft(sequence)

    # prefixes

    def best_running(self, sequence: Sequence) -> tuple[Sequence | None, int]:
        """The running sequence that has, or will soon have, the longest prefix of `sequence` in memory; how long."""
        best, length = None, 0
        for other in self.running:
            if not other.generation.cache_prompt or other.n_dropped or other.generation.deterministic:
                continue
            if other.cache_key != sequence.cache_key or other.moved:
                continue
            if sequence in other.leaders():
                continue  # each would wait for the other
            shared = sequence.runs.clip(min(sequence.prefix_shared_with(other), len(sequence.tokens) - 1))
            if not self.can_cut and shared < max(other.n_done, other.leader_goal, other.arriving):
                continue  # it is, or will be at once, past the common part and cannot be cut back to it
            if shared > length:
                best, length = other, shared
        return best, length

    def most_shared(self, sequence: Sequence) -> int:
        """The longest prefix that `sequence` has in common with a running one, whether it can be copied or not."""
        others = (other for other in self.running if other is not sequence and other.cache_key == sequence.cache_key)
        return max((sequence.prefix_shared_with(other) for other in others if not other.n_dropped), default=0)

    def should_wait(self, leader: Sequence, shared: int, available: int) -> bool:
        """Whether to wait for a leader to compute `shared` tokens of which `available` can be had now."""
        return leader.n_done < shared and shared - available >= self._share_at_least

    def followers(self, leader: Sequence) -> list[Sequence]:
        """Sequences that wait for a prefix which `leader` is computing."""
        return [other for other in self.running if other.leader is leader]

    def ready_followers(self) -> list[list[Sequence]]:
        """Followers whose leader has computed what they wait for, grouped by leader."""
        ready: dict[int, list[Sequence]] = {}
        for sequence in self.running:
            if sequence.leader is not None and sequence.leader.n_done >= sequence.leader_goal:
                ready.setdefault(sequence.leader.id, []).append(sequence)
        return list(ready.values())

    # seats

    def gap(self) -> tuple[Sequence, int] | None:
        """A sequence and the lower free seat it should move to, so that the seats in use become consecutive.

        None while they are, or while waiting requests are about to fill the gap.
        """
        if not self.running or self.waiting:
            return None
        last = max(self.running, key=lambda sequence: sequence.seat)
        if last.seat < len(self.running):
            return None
        taken = {sequence.seat for sequence in self.running}
        return last, next(seat for seat in range(self.n_seats) if seat not in taken)

    def apart(self) -> tuple[Sequence, Sequence] | None:
        """Two sequences to change seats, so that those under the same adapters, which share steps, sit side by side.

        None while they do. The one that comes first where it should not be, and the next one that should be there.
        """
        seated = sorted(self.running, key=lambda sequence: sequence.seat)
        kinds = dict.fromkeys(sequence.adapters for sequence in seated)
        if len(kinds) < 2:
            return None
        wanted = [kind for kind in kinds for sequence in seated if sequence.adapters == kind]
        for at, kind in enumerate(wanted):
            if seated[at].adapters != kind:
                return seated[at], next(sequence for sequence in seated[at:] if sequence.adapters == kind)
        return None

    # planning

    def plan(self, prefill_budget: int, capacity: int) -> Plan:
        """The next step: the new tokens of every decoding sequence, then prompt tokens within the budget.

        Of the budget the oldest prompt gets at least half, so that it always advances; the rest goes to the prompts
        with the least left to read, so that a short one does not wait for a long one. `capacity` bounds all rows.

        Only what is computed under the same adapters shares a step: such groups take turns, of one step that reads prompts
        or of some that do not. So do deterministic requests, and those that read a picture or a sound, each in steps of its
        own. Groups that read prompts share the budget, since streams wait for all of them.
        """
        groups = self._groups()
        group = self._next(groups)
        if not group:
            return Plan((), 0, 0)
        if group[0].next_run is not None:
            reading = sum(any(not s.decoding for s in others) for others in groups.values())
            plan = self._plan_vectors(group[0], max(1, prefill_budget // max(1, reading)), capacity)
        elif group[0].generation.deterministic:
            plan = self._plan_alone(group[0])
        else:
            reading = sum(any(not s.decoding for s in others) for others in groups.values())
            plan = self._plan_shared(group, max(1, prefill_budget // max(1, reading)), capacity)
        alike = len({others[0].adapters for others in groups.values()}) == 1
        if alike or plan.n_prefill or self._turn[1] == TURN:
            self._turns.append(self._turns.pop(0))
            self._turn = (None, 0)
        return plan

    def _groups(self) -> dict[Hashable, list[Sequence]]:
        """Running sequences with something to compute, by what they can share a step with."""
        groups: dict[Hashable, list[Sequence]] = {}
        for sequence in self.running:
            if sequence.n_pending and sequence.leader is None and sequence.fetching is None:
                alone = sequence.generation.deterministic or sequence.next_run is not None
                key = sequence.id if alone else sequence.adapters
                groups.setdefault(key, []).append(sequence)
        return groups

    def _next(self, groups: dict[Hashable, list[Sequence]]) -> list[Sequence]:
        """The group whose turn it is; counts the step. A new one gets its first turn after those that were there before."""
        self._turns = [*(key for key in self._turns if key in groups), *(key for key in groups if key not in self._turns)]
        if not self._turns:
            return []
        key = self._turns[0]
        self._turn = (key, self._turn[1] + 1 if self._turn[0] == key else 1)
        return groups[key]

    def _plan_shared(self, group: list[Sequence], prefill_budget: int, capacity: int) -> Plan:
        decoding = [sequence for sequence in group if sequence.decoding]
        prefilling = [sequence for sequence in group if not sequence.decoding]
        pieces = []
        for sequence in decoding:
            if count := min(sequence.n_pending, capacity):
                pieces.append(Piece(sequence, count))
                capacity -= count
        counts = self._share_out(prefilling, min(prefill_budget, capacity))
        n_decoding = len(pieces)
        pieces += [Piece(sequence, counts[sequence.id]) for sequence in prefilling if counts[sequence.id]]
        pieces.sort(key=lambda piece: piece.sequence.seat)
        return Plan(tuple(pieces), n_decoding, sum(counts.values()), group[0].adapters)

    def _plan_alone(self, sequence: Sequence) -> Plan:
        """A step whose shape depends on how far the sequence is, and on nothing else."""
        left = sequence.n_prompt - sequence.n_done
        count = min(left, FIXED_CHUNK, sequence.n_same) if left > 0 else 1
        return Plan((Piece(sequence, count),), int(left <= 0), count if left > 0 else 0, sequence.adapters)

    def _plan_vectors(self, sequence: Sequence, budget: int, capacity: int) -> Plan:
        """A step of a picture or a sound: as much as the budget allows, or all of what has to be read at once."""
        run = sequence.next_run
        assert run is not None
        most = FIXED_CHUNK if sequence.generation.deterministic else min(budget, capacity)
        count = min(most, sequence.n_same) if run.patch.causal else run.patch.n_tokens
        return Plan((Piece(sequence, count),), 0, count, sequence.adapters, run)

    def _share_out(self, prefilling: list[Sequence], budget: int) -> dict[int, int]:
        limits = {sequence.id: self._limit(sequence) for sequence in prefilling}
        counts = dict.fromkeys(limits, 0)
        if not prefilling:
            return counts
        oldest = prefilling[0]
        counts[oldest.id] = min(limits[oldest.id], max(1, budget // 2) if len(prefilling) > 1 else budget)
        left = budget - counts[oldest.id]
        for sequence in sorted(prefilling, key=lambda sequence: sequence.n_pending):
            extra = min(limits[sequence.id] - counts[sequence.id], max(0, left))
            counts[sequence.id] += extra
            left -= extra
        return counts

    def _limit(self, sequence: Sequence) -> int:
        """Most tokens a prompt may advance: not past where a follower waits to copy it or where it is to be kept, nor to where
        other adapters apply."""
        ends = [*(follower.leader_goal for follower in self.followers(sequence)), *sequence.checkpoints]
        goals = [end - sequence.n_done for end in ends]
        most = SCORED_CHUNK if sequence.generation.prompt_probs else sequence.n_pending
        return min([most, sequence.n_same, *(goal for goal in goals if goal > 0)])
