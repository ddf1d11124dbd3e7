"""What is said about how a model is computed."""

from __future__ import annotations

import msgspec
import pytest

from puna.tuning import Comparison, Tuning

RULES = Tuning(layout="split", flash_short=True, flash_long=False, n_threads=2, n_threads_batch=2)
FASTER = Comparison(what="layout", used="split", other="unified", ratio=0.8, n_pairs=3, changed=True)
SLOWER = msgspec.structs.replace(FASTER, ratio=1.2, changed=False)


@pytest.mark.parametrize(
    "fields, said",
    [
        ({}, "not measured"),
        ({"source": "measured", "seconds": 0.5, "comparisons": (SLOWER,)}, "1 alternative tried in 0.5 s, none of them faster"),
        (
            {"source": "stored", "comparisons": (SLOWER, FASTER), "complete": False},
            "2 alternatives tried at an earlier start, 1 of them faster; the next start tries the rest",
        ),
        (
            {"source": "measured", "seconds": 3.0, "complete": False},
            "nothing could be tried in 3 s; the next start tries the rest",
        ),
    ],
)
def test_report(fields: dict[str, object], said: str) -> None:
    tuning = msgspec.structs.replace(RULES, **fields)
    assert tuning.report() == f"split layout, flash attention in short contexts, 2 threads; {said}"
