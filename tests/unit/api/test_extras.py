"""The routes that clients of llama-crab and llama-cpp-python know."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes import BOS, FakeEngine, FakeTokenizer
from tests.web import client


async def test_there_and_back() -> None:
    async with client(FakeEngine(tokenizer=FakeTokenizer(add_bos=True))) as web:
        made = (await web.post("/extras/tokenize", json={"input": "hé", "model": "any"})).json()
        assert made == {"tokens": [BOS, *"hé".encode()]}
        assert (await web.post("/extras/tokenize/count", json={"input": "hé"})).json() == {"count": 4}
        assert (await web.post("/extras/detokenize", json={"tokens": made["tokens"][1:]})).json() == {"text": "hé"}
        assert (await web.post("/extras/tokenize/count", json={"input": ""})).json() == {"count": 1}


@pytest.mark.parametrize(
    "path, body, field",
    [
        ("/extras/tokenize", {}, "input"),
        ("/extras/tokenize", {"input": 5}, "input"),
        ("/extras/tokenize/count", {"input": ["a"]}, "input"),
        ("/extras/detokenize", {}, "tokens"),
        ("/extras/detokenize", {"tokens": "x"}, "tokens"),
        ("/extras/detokenize", {"tokens": [1, 99999]}, "tokens.1"),
        ("/extras/detokenize", {"tokens": [-1]}, "tokens.0"),
    ],
)
async def test_what_is_wrong_is_named(path: str, body: dict[str, Any], field: str) -> None:
    async with client(FakeEngine()) as web:
        reply = await web.post(path, json=body)
    assert reply.status_code == 400 and reply.json()["error"]["param"] == field
