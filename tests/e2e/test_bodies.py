"""Bodies that are empty, malformed, too large or full of nulls get a reply in JSON, at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.checks import is_sound
from tests.e2e.conftest import ServerMaker
from tests.e2e.dialects import CHAT, DIALECTS, Dialect, forced
from tests.e2e.server import Server

NULLABLE = """
max_tokens max_completion_tokens n temperature top_p top_k min_p seed stop stream stream_options presence_penalty
frequency_penalty repeat_penalty repeat_last_n logit_bias logprobs top_logprobs n_probs user metadata store tools
tool_choice parallel_tool_calls response_format reasoning_effort service_tier functions function_call grammar
json_schema samplers ignore_eos cache_prompt id_slot n_keep n_discard mirostat dry_multiplier dry_sequence_breakers
xtc_probability typical_p min_tokens best_of echo suffix model lora response_fields return_tokens timings_per_token
"""


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
def test_null_means_absent(tiny_server: Server, dialect: Dialect) -> None:
    fields = NULLABLE.split()
    # The grammar keeps the answer short where no limit does.
    body = dialect.body("x", **dict.fromkeys(fields)) | {"grammar": forced("ab")}
    assert dialect.read(tiny_server.json(dialect.path, body)).text == "ab"


@pytest.mark.parametrize(
    "path, body",
    [
        ("/completion", {"prompt": ""}),
        ("/completion", {"prompt": []}),
        ("/completion", {"prompt": [[]]}),
        ("/completion", {"prompt": ["a", ""]}),
        ("/v1/completions", {"prompt": ""}),
        ("/v1/completions", {"prompt": []}),
        ("/v1/completions", {"prompt": ["", "a"]}),
        (CHAT.path, {"messages": []}),
        (CHAT.path, {"messages": [{"role": "user", "content": ""}]}),
        (CHAT.path, {"messages": [{"role": "user", "content": []}]}),
        (CHAT.path, {"messages": [{"role": "assistant", "content": None}]}),
        ("/apply-template", {"messages": []}),
        ("/tokenize", {"content": ""}),
        ("/tokenize", {}),
        ("/detokenize", {"tokens": []}),
        ("/detokenize", {}),
    ],
    ids=str,
)
def test_empty_input_is_answered_at_once(tiny_server: Server, path: str, body: dict[str, Any]) -> None:
    reply = tiny_server.post(path, {**body, "max_tokens": 2}, timeout=2)
    assert is_sound(reply)
    tiny_server.assert_alive()


def test_one_empty_prompt_does_not_shift_the_others(tiny_server: Server) -> None:
    reply = tiny_server.post("/v1/completions", {"prompt": ["a", "", "b"], "max_tokens": 2, "temperature": 0})
    if reply.status_code == 200:
        choices = reply.json()["choices"]
        assert [choice["index"] for choice in choices] == [0, 1, 2]
        alone = tiny_server.json("/v1/completions", {"prompt": "b", "max_tokens": 2, "temperature": 0})
        assert choices[2]["text"] == alone["choices"][0]["text"]
    else:
        assert reply.status_code == 400


def test_an_empty_prompt_works_without_a_bos_token_too(tiny_llama_bpe: Path, make_server: ServerMaker) -> None:
    server = make_server(tiny_llama_bpe, "-c", "256", "-np", "1", "-t", "1")
    prompts: list[Any] = ["", [], [[]]]
    for prompt in prompts:
        assert is_sound(server.post("/completion", {"prompt": prompt, "n_predict": 2}, timeout=2))
    assert server.json("/tokenize", {"content": "", "add_special": True})["tokens"] == []
    server.assert_alive()


@pytest.mark.parametrize(
    "body",
    [
        b'{"prompt":"\xe6\xbc"}',
        b'{"prompt":"\xc4\xe3\xba\xc3","n_predict":1}',
        b"\xff\xfe{\x00}\x00",
        b"",
        b" ",
        b"[]",
        b'"x"',
        b"5",
        b"null",
        b'{"prompt":',
        b'{"prompt":"x"}}',
        b'{"prompt":"x",}',
        b'{"a":NaN}',
        b'{"prompt":"\\ud800","n_predict":1}',
        b'{"prompt":"\\u0000x","n_predict":1}',
        b'{"prompt":"x","n_predict":1,"n_predict":2}',
        b'{"prompt":' + b"[" * 200 + b"]" * 200 + b"}",
        b'{"prompt":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        b'{"prompt":"x","n_predict":1,"a":' + b'{"a":' * 200 + b"1" + b"}" * 201,
        b'{"prompt":"' + b"a" * 50_000 + b'"}',
    ],
    ids=lambda body: repr(body[:24]),
)
@pytest.mark.parametrize("path", ["/completion", "/v1/chat/completions", "/tokenize"])
def test_malformed_bodies_are_answered_in_json(tiny_server: Server, path: str, body: bytes) -> None:
    assert is_sound(tiny_server.post_raw(path, body))
    tiny_server.assert_alive()


def test_a_lone_surrogate_in_a_message_is_refused_or_replaced(tiny_server: Server) -> None:
    body = b'{"messages":[{"role":"user","content":"a\\ud800b"}],"max_tokens":1}'
    assert is_sound(tiny_server.post_raw(CHAT.path, body))
    tiny_server.assert_alive()


def test_a_wrong_content_type_is_still_read_as_json(tiny_server: Server) -> None:
    """Old clients post JSON as a form or as plain text."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        reply = tiny_server.post_raw("/completion", b'{"prompt":"x","n_predict":1}', kind)
        assert is_sound(reply, statuses=(200, 400, 415))
    tiny_server.assert_alive()


def test_a_body_over_the_limit_is_413(tiny_llama: Path, make_server: ServerMaker) -> None:
    server = make_server(tiny_llama, "-c", "256", "-np", "1", "-t", "1", "--max-body", "64K")
    big = b'{"prompt":"' + b"a" * 70_000 + b'"}'
    assert is_sound(server.post_raw("/completion", big), statuses=(413,))
    chunks = (big[i : i + 1000] for i in range(0, len(big), 1000))
    reply = server.client.post("/completion", content=chunks, headers={"content-type": "application/json"})
    assert is_sound(reply, statuses=(413,))
    server.assert_alive()


def test_unknown_routes_and_methods_are_answered_in_json(tiny_server: Server) -> None:
    assert is_sound(tiny_server.get("/nothing"), statuses=(404,))
    assert is_sound(tiny_server.post("/nothing", {}), statuses=(404,))
    assert is_sound(tiny_server.get("/completion"), statuses=(405,))
    assert is_sound(tiny_server.client.delete("/v1/chat/completions"), statuses=(405,))
