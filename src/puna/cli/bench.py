"""`puna bench`."""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from puna.bench import report
from puna.bench.client import Target
from puna.bench.runner import Outcomes, measure
from puna.bench.scenarios import SCENARIOS, Scenario
from puna.errors import StartupError

DESCRIPTION = """Load OpenAI-compatible servers side by side and print medians, with ratios to the first.

Servers take turns run by run, so that a change of the machine's mood hits all of them. Scenarios:
"""


def parser() -> argparse.ArgumentParser:
    """The command's flags."""
    listed = "\n".join(f"  {scenario.name:<13} {scenario.text}{' (only if named)' * scenario.special}" for scenario in SCENARIOS)
    result = argparse.ArgumentParser(
        prog="puna bench", description=DESCRIPTION + listed, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    result.add_argument("url", nargs="+", help="a server's address, such as http://127.0.0.1:8080")
    result.add_argument("--runs", type=_positive, default=3, metavar="N", help="runs of each scenario (default: 3)")
    result.add_argument("--scenario", action="append", default=[], metavar="A,B", help="only these scenarios")
    result.add_argument("--json", metavar="FILE", help="write everything measured to a file")
    result.add_argument("--api-key", default="", metavar="KEY", help="sent to every server")
    result.add_argument("--model", default="", metavar="NAME", help="name in requests (default: the first of /v1/models)")
    result.add_argument("--timeout", type=float, default=600, metavar="S", help="most seconds a request may take (default: 600)")
    result.add_argument("--seed", type=int, default=None, metavar="N", help="makes the prompts the same again (default: random)")
    result.add_argument(
        "--pid", action="append", type=_positive, default=[], metavar="PID",
        help="a process to watch while its server works, the first for the first URL and so on",
    )  # fmt: skip
    return result


def run(arguments: Sequence[str]) -> int:
    """Measure and print. 1 if some run failed."""
    try:
        options = parser().parse_args(arguments)
    except SystemExit as ended:
        return int(ended.code or 0)
    scenarios = chosen(options.scenario)
    targets = [Target(url, api_key=options.api_key, model=options.model, timeout=options.timeout) for url in options.url]
    urls = [target.url for target in targets]
    if len(set(urls)) < len(urls):
        raise StartupError("each server can be named once")
    seed = secrets.randbits(32) if options.seed is None else options.seed
    outcomes = asyncio.run(_measure(targets, scenarios, options.runs, seed, options.pid))
    console = Console()
    for scenario in scenarios:
        console.print(report.table(scenario, outcomes[scenario.name], urls))
    if options.json:
        said = {"runs": options.runs, "seed": seed, "scenarios": [scenario.name for scenario in scenarios]}
        _write(options.json, json.dumps(report.as_data(outcomes, urls, said), indent=1) + "\n")
    return 1 if any(outcome.errors for by_url in outcomes.values() for outcome in by_url.values()) else 0


def chosen(names: Sequence[str]) -> list[Scenario]:
    """The scenarios of these names; without one, all that every server can do. Raises `StartupError` for a name that is none."""
    wanted = [name.strip() for part in names for name in part.split(",") if name.strip()]
    known = {scenario.name: scenario for scenario in SCENARIOS}
    for name in wanted:
        if name not in known:
            raise StartupError(f"--scenario: there is no {name!r}; there are {', '.join(known)}")
    return [scenario for scenario in SCENARIOS if scenario.name in wanted or not (wanted or scenario.special)]


async def _measure(
    targets: Sequence[Target], scenarios: Sequence[Scenario], runs: int, seed: int, watched: Sequence[int]
) -> Outcomes:
    for target in targets:
        await target.discover()
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=len(targets) * (1 + runs * len(scenarios)))
        done = -1

        def progress(text: str) -> None:
            nonlocal done
            done += 1
            bar.update(task, completed=done, description=text)

        return await measure(targets, scenarios, runs=runs, seed=seed, watched=watched, progress=progress)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise StartupError(f"--json: cannot write {path}: {error.strerror}") from error
