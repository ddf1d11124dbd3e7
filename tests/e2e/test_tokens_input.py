"""Token ids from clients: only those of the vocabulary reach the engine, in prompts and in logit_bias."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.checks import is_sound
from tests.e2e.dialects import CHAT, DIALECTS, Dialect
from tests.e2e.server import Server


@pytest.mark.parametrize("path", ["/completion", "/v1/completions"])
@pytest.mark.parametrize(
    "prompt",
    [[1, 999_999_999], [-1], [2**31], [2**63], [2**80], [[1], [-5]], ["a", -1], [1, "a", 999_999_999], [-(2**31)]],
    ids=str,
)
def test_token_ids_outside_the_vocabulary_are_400(tiny_server: Server, path: str, prompt: Any) -> None:
    reply = tiny_server.post(path, {"prompt": prompt, "max_tokens": 1})
    assert is_sound(reply, statuses=(400,))
    assert reply.json()["error"]["param"].startswith("prompt")
    tiny_server.assert_alive()


def test_token_ids_outside_the_vocabulary_are_400_for_detokenize(tiny_server: Server) -> None:
    for tokens in ([-1], [999_999_999], [2**70], ["x"], [1.5], "x", [None]):
        assert is_sound(tiny_server.post("/detokenize", {"tokens": tokens}), statuses=(400,))
    tiny_server.assert_alive()


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
@pytest.mark.parametrize(
    "bias",
    [
        '{"1":null}',
        '{"1":true}',
        '{"1":1e999}',
        '{"1":NaN}',
        '{"999999999":1}',
        '{"-1":1}',
        "[[-1,1]]",
        "[[999999999,false]]",
        "[[1]]",
        "[[1,2,3]]",
        "[[1,true]]",
        "[[1,null]]",
        '[[1,"x"]]',
        "[[1.5,1]]",
        "[1]",
        '"x"',
    ],
)
def test_bad_logit_bias_is_400(tiny_server: Server, dialect: Dialect, bias: str) -> None:
    body = json.dumps(dialect.body("x", limit=1))[:-1] + f',"logit_bias":{bias}}}'
    reply = tiny_server.post_raw(dialect.path, body.encode())
    assert is_sound(reply, statuses=(400,))
    tiny_server.assert_alive()


def test_a_banned_token_never_comes(tiny_server: Server) -> None:
    body: dict[str, Any] = {"prompt": "x", "n_predict": 50, "temperature": 0, "ignore_eos": True, "return_tokens": True}
    plain = tiny_server.json("/completion", body)["tokens"]
    (token,) = plain[:1]
    biases: list[Any] = [[[token, False]], {str(token): False}, [[token, -1e6]]]
    for bias in biases:
        tokens = tiny_server.json("/completion", {**body, "logit_bias": bias})["tokens"]
        assert len(tokens) == 50 and token not in tokens


def test_a_favoured_token_comes_in_every_documented_form(tiny_server: Server) -> None:
    space, token = tiny_server.json("/tokenize", {"content": "漢", "add_special": False})["tokens"]
    body: dict[str, Any] = {"prompt": "x", "n_predict": 3, "temperature": 0, "return_tokens": True}
    for bias in ([[token, 1000]], {str(token): 1000}, [["漢", 1000]]):
        assert tiny_server.json("/completion", {**body, "logit_bias": bias})["tokens"][0] in (space, token)
    reply = tiny_server.json(CHAT.path, CHAT.body("x", max_tokens=3, temperature=0, logit_bias={str(token): 100}))
    assert reply["choices"][0]["message"]["content"] == "漢漢漢"
