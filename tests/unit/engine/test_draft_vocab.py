"""Which models may guess for which."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from puna.engine.draft_vocab import FIRST_COMPARED, MOST_SURPLUS, difference


@dataclass
class FakeWords:
    n_tokens: int = 300
    type: int = 2
    add_bos: bool = True
    bos: int = 1
    add_eos: bool = False
    eos: int = 2
    odd: int = -1

    def text(self, token: int, /) -> str:
        return "odd" if token == self.odd else f"t{token}"


BASE = FakeWords()


@pytest.mark.parametrize(
    "draft",
    [
        FakeWords(),
        FakeWords(n_tokens=300 + MOST_SURPLUS),
        FakeWords(n_tokens=300 - MOST_SURPLUS),
        FakeWords(eos=7),
        FakeWords(odd=FIRST_COMPARED - 1),
        FakeWords(n_tokens=301, odd=300),
    ],
)
def test_small_differences_do_not_matter(draft: FakeWords) -> None:
    assert difference(BASE, draft) == difference(draft, BASE) == ""


@pytest.mark.parametrize(
    ("draft", "said"),
    [
        (FakeWords(type=1), "BPE, the draft model's SPM"),
        (FakeWords(type=77), "number 77"),
        (FakeWords(add_bos=False), "begin with token 1, the draft model's with no special token"),
        (FakeWords(bos=3), "begin with token 1, the draft model's with token 3"),
        (FakeWords(add_eos=True), "end with no special token, the draft model's with token 2"),
        (FakeWords(n_tokens=300 + MOST_SURPLUS + 1), "knows 300 tokens, the draft model 429"),
        (FakeWords(odd=FIRST_COMPARED), "token 5 is 't5' for the model and 'odd' for the draft model"),
        (FakeWords(odd=299), "token 299 is"),
    ],
)
def test_what_differs_is_named(draft: FakeWords, said: str) -> None:
    assert said in difference(BASE, draft)
    assert difference(draft, BASE)


def test_ids_of_tokens_that_are_not_added_do_not_matter() -> None:
    none = replace(BASE, add_bos=False)
    assert difference(none, replace(none, bos=9)) == ""
