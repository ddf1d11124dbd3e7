"""Runs an engine in this process, without sockets or server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from puna.config import EngineSettings
from puna.engine.assembly import assemble
from puna.engine.loop import Engine
from puna.ipc.blackbox import Phase
from puna.ipc.frames import Abort, Output, Submit
from puna.llama.vocab import Vocab
from puna.types import Constraint, EngineStats, Generation, ModelFacts, Sampling, Timings, TokenProb

GREEDY = Sampling(temperature=0)


class Diary:
    """A recorder that remembers."""

    def __init__(self) -> None:
        self.phases: list[tuple[Phase, tuple[int, ...]]] = []
        self.n_decoded = 0

    def record(self, phase: Phase, ids: Sequence[int]) -> None:
        self.phases.append((phase, tuple(ids)))

    def decoded(self) -> None:
        self.n_decoded += 1


@dataclass
class Answer:
    """Everything one request brought."""

    tokens: list[int] = field(default_factory=list)
    probs: list[TokenProb] = field(default_factory=list)
    prompt_probs: list[TokenProb] = field(default_factory=list)
    truncated: bool = False
    end: str = "none"
    error: str = ""
    lengths: tuple[int, int] = (0, 0)
    timings: Timings | None = None
    slots: set[int] = field(default_factory=set)
    steps: list[int] = field(default_factory=list)
    """How many tokens there were after each step that brought some."""
    progress: list[tuple[int, int, int]] = field(default_factory=list)

    @property
    def cached(self) -> int:
        assert self.timings is not None
        return self.timings.cache_n

    @property
    def read(self) -> int:
        assert self.timings is not None
        return self.timings.prompt_n


class Driver:
    """An engine with a model, and the answers it has given."""

    def __init__(self, model: Path, **settings: object) -> None:
        self.diary = Diary()
        self.warnings: list[str] = []
        defaults = {"model": str(model), "n_ctx": 512, "n_slots": 4, "n_threads": 1, "calibrate": False}
        chosen = EngineSettings(**{**defaults, **settings})  # type: ignore[arg-type]  # passed on
        self.engine: Engine
        self.facts: ModelFacts
        workload, self.facts = assemble(
            chosen, safe_mode=False, recorder=self.diary, progress=lambda _done: None, warn=self.warnings.append
        )
        assert workload.generator is not None
        self.engine = workload.generator
        self.vocab: Vocab = self.engine._vocab
        self.answers: dict[int, Answer] = {}
        self.stats = EngineStats()
        self._next = 0

    def tokens(self, text: str) -> tuple[int, ...]:
        return tuple(self.vocab.tokenize(text, add_special=True, parse_special=True))

    def text(self, answer: Answer) -> str:
        return b"".join(self.vocab.piece(token) for token in answer.tokens).decode("utf-8", "replace")

    def submit(self, prompt: str | tuple[int, ...], *, force: str = "", **more: object) -> Answer:
        """Queue a request; `force` makes it answer exactly that text."""
        self._next += 1
        tokens = self.tokens(prompt) if isinstance(prompt, str) else prompt
        if force:
            more["constraint"] = Constraint("gbnf", f'root ::= "{force}"')
        self.answers[self._next] = answer = Answer()
        produced: tuple[int, ...] = more.pop("produced", ())  # type: ignore[assignment]  # one of many named fields
        generation = Generation(prompt=tokens, **{"sampling": GREEDY, **more})  # type: ignore[arg-type]  # passed on
        self.engine.submit(Submit(id=self._next, generation=generation, produced=produced))
        return answer

    def abort(self, answer: Answer) -> None:
        self.engine.abort(Abort(next(id for id, one in self.answers.items() if one is answer)))

    def step(self) -> None:
        frame = self.engine.step()
        self.stats = frame.stats
        for output in frame.outputs:
            self._take(output)

    def _take(self, output: Output) -> None:
        answer = self.answers[output.id]
        assert answer.end == "none", "output after the end"
        answer.tokens += output.tokens
        if output.tokens:
            answer.steps.append(len(answer.tokens))
        answer.probs += output.probs
        answer.prompt_probs += output.prompt_probs
        answer.end, answer.error, answer.lengths = output.end, output.error, output.lengths
        answer.truncated |= output.truncated
        answer.timings = output.timings or answer.timings
        answer.slots.add(output.slot)
        if output.progress:
            answer.progress.append((output.progress.total, output.progress.cache, output.progress.processed))

    def run(self, until: Callable[[], bool] | None = None, *, limit: int = 5000) -> None:
        """Step until nothing is left to do, or until a condition holds; fail after `limit` steps."""
        for _ in range(limit):
            if self.engine.idle or (until and until()):
                return
            self.step()
        raise AssertionError("the engine does not come to an end")

    def ask(self, prompt: str | tuple[int, ...], **more: object) -> Answer:
        """Submit one request and run to its end."""
        answer = self.submit(prompt, **more)  # type: ignore[arg-type]  # passed on
        self.run()
        return answer

    def ask_beside(self, prompt: str | tuple[int, ...], **more: object) -> Answer:
        """Submit one request and run until it ends, whatever else there is to do."""
        answer = self.submit(prompt, **more)  # type: ignore[arg-type]  # passed on
        self.run(until=lambda: answer.end != "none")
        return answer
