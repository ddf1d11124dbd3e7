"""Whether and how inputs become vectors."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from puna.config import EngineSettings
from puna.engine.pooling_choice import PoolingChoice, PoolingSize, choose_pooling, longest_input
from puna.pooling import Pooling

HEAD = frozenset({"cls.output.weight"})


def choose(
    *, file: str = "", generates: bool, arch: str = "bert", tensors: Collection[str] = (), labels: int = 1, **wish: Any
) -> PoolingChoice:
    metadata = {"general.architecture": arch, **({f"{arch}.pooling_type": file} if file else {})}
    return choose_pooling(EngineSettings(model="m", **wish), metadata, tensors, n_labels=labels, generates=generates)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"generates": True}, None),
        ({"generates": True, "file": "3"}, None),
        ({"generates": True, "pooling": "mean"}, None),
        ({"generates": True, "embeddings": True}, "last"),
        ({"generates": True, "embeddings": True, "file": "1"}, "mean"),
        ({"generates": True, "embeddings": True, "pooling": "none"}, "none"),
        ({"generates": False}, "mean"),
        ({"generates": False, "file": "2"}, "cls"),
        ({"generates": False, "file": "2", "pooling": "last"}, "last"),
        ({"generates": False, "file": "4"}, "rank"),
        ({"generates": False, "file": "4", "pooling": "cls"}, "cls"),
        ({"generates": False, "reranking": True, "tensors": HEAD}, "rank"),
        ({"generates": False, "pooling": "rank", "tensors": HEAD}, "rank"),
        ({"generates": True, "reranking": True, "arch": "qwen3", "tensors": HEAD, "labels": 2}, "rank"),
        ({"generates": False, "reranking": True, "arch": "jina-bert-v2", "tensors": {"cls.weight"}}, "rank"),
    ],
)
def test_what_the_user_says_counts_before_what_the_file_says(given: dict[str, Any], expected: Pooling | None) -> None:
    choice = choose(**given)
    assert (choice.pooling, choice.reason) == (expected, "")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"generates": False, "reranking": True}, "no ranking head"),
        ({"generates": True, "reranking": True, "arch": "llama"}, "no ranking head"),
        ({"generates": False, "reranking": True, "tensors": {"cls.weight"}}, "no ranking head"),
        ({"generates": False, "file": "4", "labels": 3}, "3 classes"),
        ({"generates": True, "reranking": True, "arch": "qwen3", "tensors": HEAD, "labels": 1}, "1 classes"),
    ],
)
def test_what_cannot_rank_says_why(given: dict[str, Any], reason: str) -> None:
    choice = choose(**given)
    assert choice.pooling is None and reason in choice.reason


@pytest.mark.parametrize(
    ("n_ctx", "generates", "more", "expected"),
    [(0, False, {}, 512), (64, False, {}, 64), (4096, False, {}, 512), (4096, True, {}, 4096), (0, True, {}, 512),
     (4096, False, {"rope_scaling": "yarn"}, 4096)],
)  # fmt: skip
def test_an_encoder_keeps_to_what_it_was_trained_for(n_ctx: int, generates: bool, more: dict[str, Any], expected: int) -> None:
    settings = EngineSettings(model="m", n_ctx=n_ctx, **more)
    assert longest_input(settings, n_ctx_train=512, generates=generates) == expected


def test_contexts_grow_by_doubling_up_to_the_longest_input() -> None:
    size = PoolingSize(pack=128, first=512, limit=3000)
    assert [size.next_length(n) for n in (1, 512, 513, 1025, 2049, 3000)] == [512, 512, 1024, 2048, 3000, 3000]
    assert PoolingSize(pack=512, first=512, limit=512).next_length(64) == 512
