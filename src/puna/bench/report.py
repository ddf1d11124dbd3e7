"""Outcomes as tables for people and as plain data for programs."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from rich.markup import escape
from rich.table import Table

from puna import __version__, machine
from puna.bench.runner import Outcome, Outcomes
from puna.bench.scenarios import Scenario
from puna.bench.stats import METRICS, Metric, ratio


def as_data(outcomes: Outcomes, urls: Sequence[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that was measured, fit for JSON."""
    return {
        "puna": __version__,
        "when": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "machine": {"cpu": machine.cpu_name(), "cores": machine.usable_cores(), "system": platform.platform()},
        "options": dict(options),
        "servers": list(urls),
        "scenarios": {
            name: {
                url: {
                    "median": outcome.figures,
                    "ratio": {metric: value for metric in METRICS if (value := _ratio(by_url, urls[0], url, metric)) is not None},
                    "runs": outcome.runs,
                    "errors": outcome.errors,
                }
                for url, outcome in by_url.items()
            }
            for name, by_url in outcomes.items()
        },
    }


def table(scenario: Scenario, by_url: Mapping[str, Outcome], urls: Sequence[str]) -> Table:
    """One scenario's medians, a column for each server and one for its ratio to the first."""
    result = Table(title=f"{scenario.name}: {scenario.text}", title_justify="left")
    result.add_column("median")
    for index, url in enumerate(urls):
        result.add_column(url, justify="right", overflow="fold")
        if index:
            result.add_column("ratio", justify="right")
    for name, metric in METRICS.items():
        if any(name in by_url[url].figures for url in urls):
            result.add_row(metric.label, *_cells(name, metric, by_url, urls))
    if any(by_url[url].errors for url in urls):
        result.add_row("failed runs", *_error_cells(by_url, urls))
    return result


def show(value: float | None, metric: Metric) -> str:
    """A figure with its unit; a dash for none."""
    if value is None:
        return "-"
    return f"{value:,.{metric.digits}f}{' ' if metric.unit not in {'', 'x', '%'} else ''}{metric.unit}"


def _cells(name: str, metric: Metric, by_url: Mapping[str, Outcome], urls: Sequence[str]) -> list[str]:
    cells: list[str] = []
    for index, url in enumerate(urls):
        cells.append(show(by_url[url].figures.get(name), metric))
        if index:
            value = _ratio(by_url, urls[0], url, name)
            cells.append("-" if value is None else f"{value:.2f}")
    return cells


def _error_cells(by_url: Mapping[str, Outcome], urls: Sequence[str]) -> list[str]:
    cells: list[str] = []
    for index, url in enumerate(urls):
        errors = by_url[url].errors
        cells.append(escape(f"{len(errors)}: {errors[0]}") if errors else "0")
        cells += [""] if index else []
    return cells


def _ratio(by_url: Mapping[str, Outcome], first: str, url: str, name: str) -> float | None:
    return ratio(by_url[url].figures.get(name), by_url[first].figures.get(name))
