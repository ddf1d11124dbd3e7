"""Counts and times as they appear in replies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from puna.service.answers import Answer
from puna.types import Progress, Timings


def timings_object(timings: Timings) -> dict[str, Any]:
    """llama.cpp's `timings`; rates are 0 where nothing was measured, and drafts are left out where there were none."""
    drafted = {"draft_n": timings.draft_n, "draft_n_accepted": timings.draft_n_accepted}
    return {
        "cache_n": timings.cache_n,
        "prompt_n": timings.prompt_n,
        "prompt_ms": timings.prompt_ms,
        "prompt_per_token_ms": _ratio(timings.prompt_ms, timings.prompt_n),
        "prompt_per_second": _ratio(1000.0 * timings.prompt_n, timings.prompt_ms),
        "predicted_n": timings.predicted_n,
        "predicted_ms": timings.predicted_ms,
        "predicted_per_token_ms": _ratio(timings.predicted_ms, timings.predicted_n),
        "predicted_per_second": _ratio(1000.0 * timings.predicted_n, timings.predicted_ms),
        **(drafted if timings.draft_n else {}),
    }


def _ratio(above: float, below: float) -> float:
    return above / below if below > 0 else 0.0


def progress_object(progress: Progress) -> dict[str, Any]:
    """llama.cpp's `prompt_progress`."""
    return {
        "total": progress.total,
        "cache": progress.cache,
        "processed": progress.processed,
        "time_ms": progress.time_ms,
    }


def usage_object(answers: Sequence[Answer], n: int, *, details: bool = False) -> dict[str, Any]:
    """OpenAI's `usage`: a prompt that has `n` answers, which lie side by side, counts once. `details`: of the answers too."""
    prompt = sum(answer.n_prompt for answer in answers[::n])
    completion = sum(answer.n_predicted for answer in answers)
    cached = sum(min(answer.timings.cache_n for answer in answers[i : i + n]) for i in range(0, len(answers), n))
    usage: dict[str, Any] = {
        "completion_tokens": completion,
        "prompt_tokens": prompt,
        "total_tokens": completion + prompt,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    if details:
        usage["completion_tokens_details"] = {"reasoning_tokens": sum(answer.n_reasoning for answer in answers)}
    return usage
