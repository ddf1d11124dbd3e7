"""How much of JSONSchemaBench puna enforces: schemas accepted without `strict`, and outputs valid under the whole schema.

A model with random weights says nothing but what the constraint makes it say. Its answers are cut off after a number of
tokens; only those that came to an end are judged, by the `jsonschema` package.

    git clone https://github.com/guidance-ai/jsonschemabench
    PYTHONPATH=src:. python bench/jsonschemabench.py jsonschemabench/data
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jsonschema import ValidationError, validators

from puna.errors import InvalidRequest
from puna.grammar import prepare
from puna.types import Constraint, Sampling
from tests import tiny
from tests.engine.driver import Answer, Driver

CLOSING = 4.0
"""Added to the logits of tokens that end strings, lists and objects, without which random answers hardly ever end."""


@dataclass
class Figures:
    """What was found in one set."""

    schemas: int = 0
    accepted: int = 0
    whole: int = 0
    """Accepted without a warning."""
    seconds: list[float] = field(default_factory=list)
    """How long each schema took to be prepared."""
    outputs: int = 0
    finished: int = 0
    valid: int = 0
    valid_formats: int = 0
    """Valid even when formats count."""
    problems: list[str] = field(default_factory=list)


def chosen(folder: Path, n: int, seed: int) -> dict[str, list[Path]]:
    """Files of `n` schemas of each set, always the same for a seed."""
    return {
        one.name: random.Random(f"{seed}/{one.name}").sample(files, min(n, len(files)))
        for one in sorted(folder.iterdir())
        if (files := sorted(one.glob("*.json")))
    }


def closing_bias(driver: Driver) -> tuple[tuple[int, float], ...]:
    """Make tokens likelier that bring an answer to its end."""
    pieces = ((token, driver.vocab.piece(token)) for token in range(driver.vocab.n_tokens))
    return tuple((token, CLOSING) for token, piece in pieces if piece[:1] in (b'"', b"}", b"]"))


def measure(
    driver: Driver, files: list[Path], n_answers: int, n_tokens: int, figures: Figures
) -> Iterator[tuple[Path, Any, str]]:
    """Ask for answers to each schema; yields the finished ones."""
    bias = closing_bias(driver)
    waiting: list[tuple[Path, Any, Answer]] = []
    for path in files:
        figures.schemas += 1
        schema = json.loads(path.read_text(encoding="utf-8"))
        begin = time.perf_counter()
        try:
            constraint = prepare(Constraint("json_schema", json.dumps(schema)))
        except InvalidRequest as error:
            figures.problems.append(f"{path.name}: {error.message[:200]}")
            continue
        finally:
            figures.seconds.append(time.perf_counter() - begin)
        figures.accepted += 1
        figures.whole += not constraint.warnings
        for seed in range(n_answers):
            sampling = Sampling(temperature=1, top_k=0, top_p=1, min_p=0, seed=seed, logit_bias=bias)
            answer = driver.submit("x", constraint=constraint, sampling=sampling, max_tokens=n_tokens)
            waiting.append((path, schema, answer))
        driver.run()
    for path, schema, answer in waiting:
        figures.outputs += 1
        if answer.end == "error":
            figures.problems.append(f"{path.name}: {answer.error[:200]}")
        if answer.end == "eos":
            figures.finished += 1
            yield path, schema, driver.text(answer)


def judge(path: Path, schema: Any, text: str, figures: Figures) -> None:
    """Whether an answer is what its schema asks for."""
    kind = validators.validator_for(schema, default=validators.Draft202012Validator)
    try:
        value = json.loads(text)
        kind(schema).validate(value)
    except (ValidationError, ValueError) as error:
        figures.problems.append(f"{path.name}: {text[:80]!r}: {str(getattr(error, 'message', error))[:120]} {rule(error)}")
        return
    except Exception as error:  # noqa: BLE001 - a schema that the judge itself cannot read counts for nothing
        figures.finished -= 1
        figures.problems.append(f"{path.name}: not judged: {type(error).__name__}")
        return
    figures.valid += 1
    figures.valid_formats += kind(schema, format_checker=kind.FORMAT_CHECKER).is_valid(value)


def rule(error: Exception) -> str:
    """The keyword that an answer breaks, and where."""
    return "/".join(map(str, error.absolute_schema_path)) if isinstance(error, ValidationError) else ""


def share(part: int, whole: int) -> str:
    return f"{part}/{whole} ({part / whole:.1%})" if whole else "0/0"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder with one folder of schemas a set")
    parser.add_argument("--per-set", type=int, default=40)
    parser.add_argument("--answers", type=int, default=8, help="answers to each schema")
    parser.add_argument("--tokens", type=int, default=600, help="tokens after which an answer is cut off")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of schemas")
    parser.add_argument("--problems", action="store_true", help="list what was refused, invalid or not judged")
    arguments = parser.parse_args()
    total = Figures()
    with tempfile.TemporaryDirectory() as folder:
        model = tiny.write_llama(Path(folder) / "tiny.gguf", n_layer=1)
        driver = Driver(model, n_ctx=1024, n_slots=8, cache_ram=0)
        for name, files in chosen(arguments.data, arguments.per_set, arguments.seed).items():
            found = Figures()
            for path, schema, text in measure(driver, files, arguments.answers, arguments.tokens, found):
                judge(path, schema, text, found)
            report(name, found)
            for key in ("schemas", "accepted", "whole", "outputs", "finished", "valid", "valid_formats"):
                setattr(total, key, getattr(total, key) + getattr(found, key))
            total.seconds += found.seconds
            if arguments.problems:
                for problem, count in Counter(found.problems).items():
                    print(f"    {count} x {problem}")
    report("all", total)


def report(name: str, found: Figures) -> None:
    """One line a set."""
    seconds = sorted(found.seconds)
    print(
        f"{name}: accepted {share(found.accepted, found.schemas)}, without a warning {share(found.whole, found.schemas)}; "
        f"finished {share(found.finished, found.outputs)}; valid {share(found.valid, found.finished)}, "
        f"with formats {share(found.valid_formats, found.finished)}; "
        f"prepared in {seconds[len(seconds) // 2] * 1000:.0f} ms (median), {seconds[-1]:.2f} s (most)",
        flush=True,
    )


if __name__ == "__main__":
    main()
