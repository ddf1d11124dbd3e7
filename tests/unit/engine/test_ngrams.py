"""Guesses from text that repeats itself."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from puna.engine.ngrams import LEAST, LONGEST, Drafter, SharedDrafter, SharedNgrams, SuffixMap, SuffixSearch

FORMS: list[Callable[[], Drafter]] = [SuffixSearch, SuffixMap, lambda: SharedDrafter(SharedNgrams())]

forms = pytest.mark.parametrize("make", FORMS, ids=["simple", "map", "cache"])


def fed(make: Callable[[], Drafter], tokens: list[int]) -> Drafter:
    drafter = make()
    drafter.feed(tokens)
    return drafter


@forms
def test_what_followed_before_is_guessed_again(make: Callable[[], Drafter]) -> None:
    guess = fed(make, [1, 2, 3, 4, 5, 6, 7, 99, 2, 3, 4]).guess(3)
    assert guess is not None
    assert (guess.tokens, guess.match) == ((5, 6, 7), 3)


@forms
def test_the_longest_match_wins_over_a_newer_one(make: Callable[[], Drafter]) -> None:
    guess = fed(make, [9, 8, 1, 2, 3, 50, 51, 7, 1, 2, 3, 60, 61, 9, 8, 1, 2, 3]).guess(2)
    assert guess is not None
    assert (guess.tokens, guess.match) == ((50, 51), 5)


@forms
def test_of_equal_matches_the_newest_wins(make: Callable[[], Drafter]) -> None:
    guess = fed(make, [1, 2, 3, 50, 7, 1, 2, 3, 60, 8, 1, 2, 3]).guess(1)
    assert guess is not None
    assert guess.tokens == (60,)


@forms
def test_new_text_gives_no_guess(make: Callable[[], Drafter]) -> None:
    for n in range(40):
        assert fed(make, list(range(n))).guess(4) is None


@forms
def test_circles_go_on(make: Callable[[], Drafter]) -> None:
    guess = fed(make, [1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3]).guess(10)
    assert guess is not None
    assert guess.tokens == (4, 1, 2, 3, 4, 1, 2, 3, 4, 1)
    same = fed(make, [5] * 80).guess(6)
    assert same is not None
    assert (same.tokens, same.match) == ((5,) * 6, LONGEST)


def test_bytes_that_match_between_tokens_are_no_match() -> None:
    """0x01000000 and its neighbours hold the bytes of 1, 1, 1 at a shifted place."""
    assert fed(SuffixSearch, [1 << 8, 1 << 8, 1 << 8, 1 << 8, 70, 1, 1, 1]).guess(1) is None


@forms
@pytest.mark.parametrize("seed", range(3))
def test_feeding_in_pieces_changes_nothing(make: Callable[[], Drafter], seed: int) -> None:
    dice = random.Random(seed)
    tokens = [dice.randrange(4) for _ in range(60)]
    for cut in range(len(tokens)):
        drafter = fed(make, tokens[:cut])
        drafter.feed(tokens[cut:])
        assert drafter.guess(8) == fed(make, tokens).guess(8)


@pytest.mark.parametrize("seed", range(8))
def test_search_and_map_agree_and_are_true(seed: int) -> None:
    dice = random.Random(seed)
    search, index = SuffixSearch(), SuffixMap()
    tokens: list[int] = []
    for _ in range(200):
        token = 1 + dice.randrange(3)
        tokens.append(token)
        search.feed([token])
        index.feed([token])
        guess = index.guess(5)
        assert search.guess(5) == guess
        if guess is not None and guess.match >= LEAST:
            known = tokens[-guess.match :]
            places = [at for at in range(guess.match, len(tokens)) if tokens[at - guess.match : at] == known]
            assert any(tokens[at] == guess.tokens[0] for at in places)


def test_requests_have_things_in_common() -> None:
    shared = SharedNgrams()
    SharedDrafter(shared).feed([1, 2, 3, 4, 5, 6])
    other = SharedDrafter(shared)
    other.feed([9, 2, 3, 4])
    guess = other.guess(8)
    assert guess is not None
    assert guess.tokens == (5, 6)


def test_most_requests_decide() -> None:
    shared = SharedNgrams()
    for follower in (7, 8, 8, 8, 7):
        shared.put([1, 2, 3, follower])
    assert shared.follow([1, 2, 3], 1) == (8,)


def test_what_is_shared_is_bounded_and_the_oldest_goes_first() -> None:
    shared = SharedNgrams(capacity=10)
    shared.put([1, 2, 3, 4])
    for n in range(100, 108):
        shared.put([n, n, n, n])
    shared.put([1, 2, 3, 4])  # used again
    shared.put(list(range(200, 208)))
    assert len(shared) == 10
    assert shared.follow([1, 2, 3], 1) == (4,)
    assert shared.follow([100] * 3, 1) == ()


ORIGINAL = list(range(10, 60))


@forms
@pytest.mark.parametrize(
    ("copied", "expected", "match"),
    [
        ([*ORIGINAL[:20], 99], ORIGINAL[21:25], 0),
        ([*ORIGINAL[:20], 99, ORIGINAL[21]], ORIGINAL[22:26], 1),
        ([*ORIGINAL[:20], 99, 98, ORIGINAL[22]], ORIGINAL[23:27], 1),
        ([*ORIGINAL[:20], 99, ORIGINAL[20]], ORIGINAL[21:25], 1),
        ([*ORIGINAL[:20], 99, 98, ORIGINAL[20]], ORIGINAL[21:25], 1),
        ([*ORIGINAL[:20], ORIGINAL[21], ORIGINAL[22]], ORIGINAL[23:27], 1),
        ([*ORIGINAL[:20], ORIGINAL[22], ORIGINAL[23], ORIGINAL[24], ORIGINAL[25]], ORIGINAL[26:30], 4),
    ],
    ids=["differs", "and back", "two differ", "one more", "two more", "one less", "two less"],
)
def test_a_copy_is_followed_across_what_differs(
    make: Callable[[], Drafter], copied: list[int], expected: list[int], match: int
) -> None:
    drafter = fed(make, [*ORIGINAL, 1, *copied[:12]])
    for token in copied[12:]:
        assert drafter.guess(4) is not None
        drafter.feed([token])
    guess = drafter.guess(4)
    assert guess is not None
    assert (guess.tokens, guess.match) == (tuple(expected), match)


@forms
def test_a_copy_that_goes_its_own_way_is_left(make: Callable[[], Drafter]) -> None:
    drafter = fed(make, [*ORIGINAL, 1, *ORIGINAL[:20]])
    assert drafter.guess(4) is not None
    for token in range(100, 110):
        drafter.feed([token])
        guess = drafter.guess(4)
    assert guess is None


@forms
def test_a_sure_place_wins_over_the_copy(make: Callable[[], Drafter]) -> None:
    other = list(range(200, 220))
    drafter = fed(make, [*other, *ORIGINAL, 1, *ORIGINAL[:20]])
    assert drafter.guess(4) is not None
    drafter.feed(other[:3])
    short = drafter.guess(4)
    assert short is not None
    drafter.feed(other[3:8])
    sure = drafter.guess(4)
    assert sure is not None
    assert (sure.tokens, sure.match) == (tuple(other[8:12]), 8)
