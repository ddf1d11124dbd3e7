"""What is refused before anything begins."""

from __future__ import annotations

import msgspec
import pytest

from puna.client.admission import LONGEST_WAIT, MOST_HELD, check, media_fits, retry_after
from puna.errors import ContextExceeded, InvalidRequest
from puna.types import Generation, ModelFacts

FACTS = msgspec.convert(
    {
        **dict.fromkeys(("path", "description", "architecture", "engine"), ""),
        **dict.fromkeys(
            ("n_params", "n_bytes", "vocab_type", "n_embd", "n_layer", "n_ctx_train", "n_threads", "n_threads_batch"), 1
        ),
        **dict.fromkeys(("flash_attention", "can_cut", "has_decoder", "safe_mode"), False),
        "n_vocab": 100,
        "n_ctx": 8,
        "n_slots": 4,
        "layout": "split",
        "chat_template": None,
        "metadata": {},
    },
    ModelFacts,
)


@pytest.mark.parametrize(("n", "max_tokens"), [(1, -1), (7, -1), (7, 1), (7, 10_000), (8, 0)])
def test_fits(n: int, max_tokens: int) -> None:
    check(Generation(prompt=(99,) * n, max_tokens=max_tokens), FACTS)


@pytest.mark.parametrize(("n", "max_tokens"), [(8, -1), (8, 1), (9, 0), (1400, 1)])
def test_does_not_fit(n: int, max_tokens: int) -> None:
    with pytest.raises(ContextExceeded) as error:
        check(Generation(prompt=(0,) * n, max_tokens=max_tokens), FACTS)
    assert (error.value.n_prompt_tokens, error.value.n_ctx) == (n, 8)


@pytest.mark.parametrize("prompt", [(), (-1,), (1, 100), (2**40, 1)])
def test_no_prompt_at_all(prompt: tuple[int, ...]) -> None:
    with pytest.raises(InvalidRequest) as error:
        check(Generation(prompt=prompt), FACTS)
    assert error.value.param == "prompt"


@pytest.mark.parametrize(
    ("mean", "n_slots", "seconds"), [(0.01, 4, 1), (8.0, 4, 2), (8.1, 4, 3), (1e9, 4, LONGEST_WAIT), (5.0, 0, 5)]
)
def test_retry_after(mean: float, n_slots: int, seconds: int) -> None:
    assert retry_after(mean, n_slots) == seconds


@pytest.mark.parametrize(
    ("new", "held", "fits"),
    [
        (0, [MOST_HELD], True),
        (1, [MOST_HELD], False),
        (1, [MOST_HELD - 2, 1], True),
        (2, [MOST_HELD - 2, 1], False),
        (MOST_HELD + 1, [0, 0], True),
        (5, [], True),
    ],
)
def test_media_of_all_requests_together(new: int, held: list[int], fits: bool) -> None:
    assert media_fits(new, iter(held)) == fits
