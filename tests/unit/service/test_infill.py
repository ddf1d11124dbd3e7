"""Prompts with a gap: the order of their parts, and what is cut when there is too much."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puna.errors import InvalidRequest, NotSupported
from puna.service.infill import Gap, Parts, Piece, arrange, check_fim, fill_prompt, fit, whole_fill_prompt
from tests.fakes import BOS, MID, PRE, REP, SEP, SUF, FakeTokenizer

FILES = FakeTokenizer(add_bos=True, n_fim=5)
PLAIN = FakeTokenizer(n_fim=3)
ROOMY = {"n_ctx": 4096, "n_batch": 2048}


def shown(tokenizer: FakeTokenizer, tokens: tuple[int, ...]) -> str:
    return tokenizer.detokenize(tokens)


async def test_the_order_with_file_tokens() -> None:
    gap = Gap(before="be\n", line="  li", after="af", pieces=(Piece("one", "a.py"), Piece("two")))
    prompt = shown(FILES, await fill_prompt(FILES, gap, **ROOMY))
    assert prompt == "<s><REP>myproject\n<SEP>a.py\none<SEP>tmp\ntwo<SEP>filename\n<PRE>be\n  li<SUF>af<MID>"


async def test_the_order_without_file_tokens() -> None:
    gap = Gap(before="be", after="af", pieces=(Piece("one", "a.py"), Piece("two")))
    prompt = shown(PLAIN, await fill_prompt(PLAIN, gap, **ROOMY))
    assert prompt == "\n\n--- snippet ---\n\none\n\n--- snippet ---\n\ntwo<PRE>be<SUF>af<MID>"


async def test_token_ids_are_taken_and_bos_is_there_once() -> None:
    gap = Gap(before=[BOS, 97, "b"], line="c", after=[BOS, 100])
    prompt = await fill_prompt(FILES, gap, **ROOMY)
    assert prompt.count(BOS) == 1 and prompt[0] == BOS
    assert shown(FILES, prompt).endswith("<PRE>abc<SUF>d<MID>")


async def test_texts_of_control_tokens_are_texts() -> None:
    gap = Gap(before="<MID>", line="</s>", after="<SUF>", pieces=(Piece("<PRE>", "<SEP>"),))
    prompt = await fill_prompt(FILES, gap, **ROOMY)
    assert [prompt.count(token) for token in (PRE, SUF, MID, SEP, REP)] == [1, 1, 1, 2, 1]
    assert "<MID></s>" in shown(FILES, prompt)


async def test_ids_outside_the_vocabulary_are_named() -> None:
    with pytest.raises(InvalidRequest) as caught:
        await fill_prompt(FILES, Gap(before="", after=[1, 999]), **ROOMY)
    assert caught.value.param == "input_suffix.1"


async def test_a_suffix_alone_cuts_nothing() -> None:
    prompt = await whole_fill_prompt(FILES, "b" * 5000, "a" * 5000, param="prompt")
    assert prompt == (BOS, PRE, *b"b" * 5000, SUF, *b"a" * 5000, MID)


@pytest.mark.parametrize("n_fim, missing", [(0, "no prefix and no suffix and no middle"), (2, "no middle"), (3, ""), (5, "")])
def test_missing_tokens_are_named(n_fim: int, missing: str) -> None:
    if not missing:
        check_fim(FakeTokenizer(n_fim=n_fim))
        return
    with pytest.raises(NotSupported, match=missing):
        check_fim(FakeTokenizer(n_fim=n_fim))


def parts(n_before: int, n_after: int, *lengths: int) -> Parts:
    """Every token of the text before tells its place, likewise after; pieces have two tokens of marker."""
    pieces = tuple(((SEP, 10 + i), tuple(range(1000 * i, 1000 * i + length))) for i, length in enumerate(lengths, 1))
    return Parts(head=(BOS, REP), pieces=pieces, this_file=(SEP, 9), before=range(n_before), after=range(n_after))


def lengths(fitted: Parts) -> list[int]:
    return [len(text) for _, text in fitted.pieces]


def test_what_fits_is_left_alone() -> None:
    everything = parts(300, 100, 50, 60)
    fitted = fit(everything, n_ctx=2048, n_batch=1024)
    assert arrange(FILES, fitted) == arrange(FILES, everything)


def test_far_ends_are_cut_three_to_one() -> None:
    fitted = fit(parts(5000, 5000), n_ctx=8192, n_batch=2048)
    assert list(fitted.before) == list(range(5000 - 1536, 5000))
    assert list(fitted.after) == list(range(512 - 7))


def test_in_a_small_context_they_are_cut_to_what_there_is() -> None:
    fitted = fit(parts(5000, 5000, 100), n_ctx=512, n_batch=2048)
    assert (len(fitted.before), len(fitted.after), lengths(fitted)) == (288, 96 - 7, [])
    assert len(arrange(FILES, fitted)) <= 384


def test_other_files_are_cut_before_the_text_is_and_the_oldest_first() -> None:
    fitted = fit(parts(200, 60, 40, 40, 500, 30), n_ctx=512, n_batch=2048)
    assert (len(fitted.before), len(fitted.after)) == (200, 60)
    (_, third), (marker, fourth) = fitted.pieces
    assert (marker, len(fourth)) == ((SEP, 14), 30)
    assert third == tuple(range(3500 - len(third), 3500)) and 0 < len(third) < 500
    assert len(arrange(FILES, fitted)) <= 384


def test_in_a_large_context_the_text_has_no_say_in_what_other_files_get() -> None:
    cuts = {tuple(lengths(fit(parts(n, 10, 3000, 9000), n_ctx=8192, n_batch=2048))) for n in (0, 1, 500, 2000)}
    assert cuts == {(8192 - 512 - 2048 - 2,)}


def test_in_a_small_one_the_cut_moves_in_steps() -> None:
    cuts = [lengths(fit(parts(n, 10, 3000), n_ctx=1024, n_batch=2048))[0] for n in range(100, 400)]
    assert 1 < len(set(cuts)) <= 4


@given(
    st.integers(0, 3000), st.integers(0, 3000), st.lists(st.integers(0, 1500), max_size=6), st.integers(64, 4096),
    st.integers(32, 2048),
)  # fmt: skip
def test_a_quarter_or_512_tokens_are_always_left_for_the_answer(
    n_before: int, n_after: int, others: list[int], n_ctx: int, n_batch: int
) -> None:
    fitted = fit(parts(n_before, n_after, *others), n_ctx=n_ctx, n_batch=n_batch)
    assert len(arrange(FILES, fitted)) <= n_ctx - min(n_ctx // 4, 512)
    assert list(fitted.before) == list(range(n_before - len(fitted.before), n_before))
    assert list(fitted.after) == list(range(len(fitted.after)))
