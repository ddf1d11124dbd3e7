"""Prompts in every form, and what is refused about them."""

from __future__ import annotations

from typing import Any

import pytest

from puna.chat import MediaPart
from puna.errors import InvalidRequest
from puna.service.media import COMMON_MARKER, MARKER
from puna.service.prompts import (
    LONG_TEXT,
    MediaPrompt,
    Prompt,
    split_prompts,
    tokenize_around,
    tokenize_mixed,
    tokenize_prompt,
)
from tests.fakes import BOS, EOS, IM_START, FakeTokenizer


@pytest.mark.parametrize(
    "value, prompts",
    [
        ("hi", ["hi"]),
        ("", [""]),
        ([1, 2], [[1, 2]]),
        ([1, "a", 2], [[1, "a", 2]]),
        (["a", 1], [["a", 1]]),
        (["a"], ["a"]),
        (["a", "b"], ["a", "b"]),
        ([[1], [2, "x"]], [[1], [2, "x"]]),
        (["a", [1, 2]], ["a", [1, 2]]),
        ({"prompt_string": "a"}, ["a"]),
        ({"prompt_string": "a", "multimodal_data": []}, ["a"]),
        ([{"prompt_string": "a"}, [1]], ["a", [1]]),
    ],
)
def test_forms(value: Any, prompts: list[Prompt]) -> None:
    assert split_prompts(value) == prompts


@pytest.mark.parametrize(
    "value, param",
    [
        (5, "prompt"),
        (True, "prompt"),
        (1.5, "prompt"),
        ([], "prompt"),
        ([[]], "prompt.0"),
        ([None], "prompt.0"),
        ([1.5], "prompt.0"),
        ([True], "prompt.0"),
        ([1, True], "prompt.1"),
        ([1, None], "prompt.1"),
        ([1, [2]], "prompt.1"),
        (["a", 5.5], "prompt.1"),
        ([[1, {}]], "prompt.0.1"),
        ({"a": 1}, "prompt.prompt_string"),
        ({"prompt_string": None}, "prompt.prompt_string"),
        ([{"prompt_string": 5}], "prompt.0.prompt_string"),
    ],
)
def test_what_is_no_prompt_is_refused_by_name(value: Any, param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        split_prompts(value)
    assert caught.value.param == param


@pytest.mark.parametrize("marker", [MARKER, COMMON_MARKER])
def test_media_stand_where_markers_are(marker: str) -> None:
    (found,) = split_prompts([{"prompt_string": f"a{marker}{marker}b", "multimodal_data": ["x", "y"]}])
    assert isinstance(found, MediaPrompt)
    assert [piece if isinstance(piece, str) else (piece.source, piece.at) for piece in found.pieces] == [
        *("a", ("x", "prompt.0.multimodal_data.0"), ("y", "prompt.0.multimodal_data.1"), "b")
    ]


@pytest.mark.parametrize(
    ("text", "media", "param"),
    [
        ("a", ["x"], "prompt.prompt_string"),
        (MARKER, ["x", "y"], "prompt.prompt_string"),
        (f"{MARKER}{COMMON_MARKER}{MARKER}", ["x"], "prompt.prompt_string"),
        (MARKER, [5], "prompt.multimodal_data.0"),
        (MARKER, "x", "prompt.multimodal_data"),
        (MARKER, {"a": 1}, "prompt.multimodal_data"),
    ],
)
def test_markers_and_media_have_to_agree(text: str, media: Any, param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        split_prompts({"prompt_string": text, "multimodal_data": media})
    assert caught.value.param == param


def test_what_a_model_wants_around_a_text_is_around_all_of_it() -> None:
    part = MediaPart("image", "", "", "")
    assert tokenize_around(FakeTokenizer(add_bos=True), [part, "a</s>", part], counts=[2, 1]) == [256, -1, -1, 97, 257, -1]
    assert tokenize_around(FakeTokenizer(), ["a", part], counts=[1]) == [97, -1]


@pytest.mark.parametrize("prompt, at", [([1, -1], 1), ([260], 0), ([0, 259, 2**31], 2), ([10**400], 0), (["a", -1], 1)])
async def test_ids_outside_the_vocabulary_are_refused_by_place(prompt: Prompt, at: int) -> None:
    with pytest.raises(InvalidRequest) as caught:
        await tokenize_prompt(FakeTokenizer(), prompt, param="prompt")
    assert caught.value.param == f"prompt.{at}"


@pytest.mark.parametrize(
    "prompt, tokens",
    [
        ("a", (BOS, 97)),
        ("<s>a", (BOS, 97)),
        ("<|im_start|>a", (BOS, IM_START, 97)),
        (["a", 98, "c"], (BOS, 97, 98, 99)),
        ([98, "c"], (98, 99)),
        ([BOS, BOS, 98], (BOS, 98)),
        ("", (BOS,)),
        ([""], (BOS,)),
    ],
)
async def test_bos_is_there_once(prompt: Prompt, tokens: tuple[int, ...]) -> None:
    assert await tokenize_prompt(FakeTokenizer(add_bos=True), prompt, param="prompt") == tokens


async def test_an_empty_prompt_is_what_the_model_can_start_with() -> None:
    tokenizer = FakeTokenizer()
    assert await tokenize_prompt(tokenizer, "", param="prompt") == (BOS,)
    tokenizer.bos = -1
    assert await tokenize_prompt(tokenizer, "", param="prompt") == (EOS,)
    tokenizer.eos = -1
    with pytest.raises(InvalidRequest) as caught:
        await tokenize_prompt(tokenizer, "", param="prompt")
    assert caught.value.param == "prompt"


async def test_long_texts_give_the_same_ids() -> None:
    text = "ab" * LONG_TEXT
    tokens = await tokenize_mixed(FakeTokenizer(), text, add_special=False, parse_special=False, param="prompt")
    assert tokens == list(text.encode())
