"""Which models have to go."""

from __future__ import annotations

import pytest

from puna.config import EngineSettings
from puna.gguf import Header
from puna.models.estimate import OVERHEAD, needed_bytes
from puna.models.policy import Resident, next_look, to_evict, to_sleep
from puna.models.probe import jobs

OLD, NEW, BUSY = Resident("old", 10, False, 1.0), Resident("new", 20, False, 2.0), Resident("busy", 30, True, 0.0)
ALL = [NEW, BUSY, OLD]


@pytest.mark.parametrize(
    "needed, most, budget, gone",
    [
        (5, 0, 0, []),
        (5, 4, 100, []),
        (5, 3, 0, ["old"]),
        (5, 2, 0, ["old", "new"]),
        (5, 1, 0, None),
        (40, 0, 100, []),
        (41, 0, 100, ["old"]),
        (60, 0, 100, ["old", "new"]),
        (71, 0, 100, None),
        (45, 3, 100, ["old"]),
    ],
)
def test_the_least_recently_used_goes_and_never_a_busy_one(needed: int, most: int, budget: int, gone: list[str] | None) -> None:
    assert to_evict(ALL, needed, most=most, budget=budget) == gone


def test_a_model_larger_than_the_budget_finds_nothing_to_send_away() -> None:
    assert to_evict([], 500, most=0, budget=100) == []


def test_sleep() -> None:
    assert to_sleep(ALL, 11.0, after=9.5) == ["old"]
    assert to_sleep(ALL, 11.0, after=0) == [] and to_sleep(ALL, 1000.0, after=-1) == []
    assert to_sleep(ALL, 12.0, after=10) == ["new", "old"]
    assert next_look(ALL, 3.0, after=10) == 8.0 and next_look([BUSY], 3.0, after=10) is None
    assert next_look(ALL, 300.0, after=10) == 0.0 and next_look(ALL, 3.0, after=0) is None


def header(architecture: str, **metadata: int) -> Header:
    values = {f"{architecture}.{key}": value for key, value in metadata.items()}
    return Header(
        path="x",
        version=3,
        metadata={"general.architecture": architecture, **values},
        list_lengths={},
        n_tensors=1,
        n_params=1,
        quantisation="F16",
        file_bytes=1000,
        needed_bytes=1000,
    )


def test_an_estimate_holds_weights_and_the_first_context() -> None:
    one = header("llama", **{"block_count": 2, "attention.head_count": 4, "attention.head_count_kv": 2, "embedding_length": 64})
    engine = EngineSettings(model="x", n_slots=2)
    assert needed_bytes(one, engine) == 1000 + OVERHEAD + 2 * 512 * 2 * 2 * (16 + 16) * 2
    assert needed_bytes(header("mamba"), engine) == 1000 + OVERHEAD


def test_what_a_file_is_good_for() -> None:
    plain = EngineSettings(model="x")
    assert jobs(header("llama"), plain) == {"text", "infill"}
    assert jobs(header("llama"), EngineSettings(model="x", embeddings=True)) == {"text", "infill", "embedding"}
    assert jobs(header("bert"), plain) == {"embedding"}
    assert jobs(header("bert", pooling_type=4), plain) == {"rerank"}
    assert jobs(header("llama"), EngineSettings(model="x", reranking=True)) == {"rerank"}
