"""What choosing tokens costs beside computing them: the whole sampler chain for many sequences of one model.

PYTHONPATH=src:. python bench/sampling.py MODEL.gguf --sequences 16
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

from puna.engine.choosing import Chooser
from puna.types import Sampling
from tests.engine.driver import Driver

CHAIN = Sampling(
    temperature=0.8,
    top_k=40,
    top_p=0.95,
    min_p=0.05,
    typical_p=0.98,
    top_n_sigma=3.0,
    xtc_probability=0.1,
    repeat_penalty=1.1,
    presence_penalty=0.1,
    dry_multiplier=0.8,
)
"""Every member of the chain does something."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--sequences", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    driver = Driver(arguments.model, n_slots=arguments.sequences, n_threads=arguments.threads, flash_attention="auto")
    spent = _watched()
    answers = [
        driver.submit(f"Tale number {i}: once upon a time", sampling=CHAIN, max_tokens=arguments.tokens)
        for i in range(arguments.sequences)
    ]
    shares: list[float] = []
    costs: list[float] = []
    while any(answer.end == "none" for answer in answers):
        spent.clear()
        begin = time.perf_counter()
        driver.step()
        whole = time.perf_counter() - begin
        if len(spent) == arguments.sequences + 1:
            shares.append(sum(spent) / whole)
            costs.append(sum(spent))
    print(
        f"vocabulary of {driver.vocab.n_tokens} tokens, {arguments.sequences} sequences, {len(shares)} steps: "
        f"sampling takes {statistics.median(costs) * 1000:.1f} ms of a step, {statistics.median(shares):.1%} (medians)"
    )


def _watched() -> list[float]:
    """Seconds of every choice from now on: those that are made together, and then what is left for each sequence."""
    spent: list[float] = []

    def timed(method: Any) -> Any:
        def call(*values: Any) -> Any:
            begin = time.perf_counter()
            try:
                return method(*values)
            finally:
                spent.append(time.perf_counter() - begin)

        return call

    # measured from outside, so that serving pays nothing
    for name in ("look_ahead", "advance"):
        setattr(Chooser, name, timed(getattr(Chooser, name)))
    return spent


if __name__ == "__main__":
    main()
