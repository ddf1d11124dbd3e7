"""Runs scenarios against servers in turn, and keeps what they brought."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from puna.bench import prompts
from puna.bench.client import Target
from puna.bench.scenarios import COMPLETIONS, Failed, Scenario
from puna.bench.stats import medians
from puna.bench.watch import between, usage


@dataclass
class Outcome:
    """What a scenario brought on one server."""

    runs: list[dict[str, float]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def figures(self) -> dict[str, float]:
        """The medians over all runs that worked."""
        return medians(self.runs)


Outcomes = dict[str, dict[str, Outcome]]
"""Scenario name to URL to outcome."""


def order(targets: Sequence[Target], run: int) -> list[Target]:
    """Who goes when in a run: in turn, with another one first each time, so that nobody always follows the same one."""
    shift = run % len(targets)
    return [*targets[shift:], *targets[:shift]]


async def measure(
    targets: Sequence[Target],
    scenarios: Sequence[Scenario],
    *,
    runs: int,
    seed: int,
    watched: Sequence[int] = (),
    progress: Callable[[str], None] = lambda text: None,
) -> Outcomes:
    """Run every scenario `runs` times on every server, alternating. `watched` are process ids, one for each target.

    `progress` is called before each run with what comes next. A run that fails is kept as an error.
    """
    outcomes: Outcomes = {scenario.name: {target.url: Outcome() for target in targets} for scenario in scenarios}
    pids = dict(zip((target.url for target in targets), watched, strict=False))
    for target in targets:
        progress(f"warming {target.url}")
        await warm(target, seed)
    for scenario in scenarios:
        for run in range(runs):
            for target in order(targets, run):
                progress(f"{scenario.name}, run {run + 1}, {target.url}")
                outcome = outcomes[scenario.name][target.url]
                pid = pids.get(target.url)
                before = usage(pid) if pid else None
                try:
                    # the same prompts for all servers in a run, and never the same in two runs
                    figures = await scenario.run(target, (seed, scenario.name, run))
                except Failed as failure:
                    outcome.errors.append(str(failure))
                    continue
                outcome.runs.append({**figures, **between(before, usage(pid) if pid else None)})
    return outcomes


async def warm(target: Target, seed: int) -> None:
    """Let a server touch its weights once. What fails here shows in the scenarios."""
    await target.stream(COMPLETIONS, prompts.completion(prompts.words(8, (seed, "warm", time.time_ns())), 4))
