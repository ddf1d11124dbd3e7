"""What editors and chat front ends send besides the dialects' own clients, replayed, and what they take out of the replies."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from tests.fakes import FACTS, FakeEngine, FakeTokenizer, say
from tests.unit.api.test_anthropic import TEMPLATE
from tests.unit.api.test_infill import LLAMA_VIM
from tests.web import client, objects

LLAMA_VSCODE = {
    **LLAMA_VIM,
    "input_extra": [{"text": "x = 1\n", "filename": "a.py"}],
    "n_cmpl": 3,
    "lora": [],
    "t_max_predict_ms": 1000,
}
CONTINUE = {
    "prompt": "<PRE>a<SUF>b<MID>",
    "n_predict": 256,
    "stop": ["<PRE>", "<SUF>", "\n\n"],
    "frequency_penalty": None,
    "presence_penalty": None,
    "min_p": None,
    "mirostat": None,
    "top_p": 0.95,
    "top_k": 40,
    "temperature": 0.01,
    "stream": True,
}
ZED = {"model": "m", "prompt": "<PRE>a<SUF>b<MID>", "max_tokens": 64, "stop": ["<PRE>", "\n\n\n"]}
COPILOT = {
    "prompt": "def f():\n    ",
    "suffix": "\n",
    "max_tokens": 500,
    "temperature": 0,
    "top_p": 1,
    "n": 1,
    "stop": ["\n"],
    "nwo": "owner/name",
    "stream": True,
    "extra": {"language": "python", "next_indent": 0, "trim_by_indentation": True, "prompt_tokens": 7, "suffix_tokens": 1},
}
SILLY_TAVERN: dict[str, Any] = {
    "prompt": "Once",
    "n_predict": 80,
    "max_tokens": 80,
    "max_new_tokens": 80,
    "temperature": 1,
    "temperature_last": True,
    "top_k": 0,
    "top_p": 1,
    "top_a": 0,
    "min_p": 0.1,
    "tfs": 1,
    "tfs_z": 1,
    "typical_p": 1,
    "typical": 1,
    "top_n_sigma": -1,
    "epsilon_cutoff": 0,
    "eta_cutoff": 0,
    "xtc_threshold": 0.1,
    "xtc_probability": 0,
    "dry_allowed_length": 2,
    "dry_multiplier": 0,
    "dry_base": 1.75,
    "dry_sequence_breakers": ["\n", ":", '"', "*"],
    "dry_penalty_last_n": 0,
    "mirostat": 0,
    "mirostat_mode": 0,
    "mirostat_tau": 5,
    "mirostat_eta": 0.1,
    "repeat_penalty": 1,
    "repetition_penalty": 1,
    "rep_pen": 1,
    "rep_pen_range": 0,
    "repetition_penalty_range": 0,
    "repeat_last_n": 0,
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "encoder_repetition_penalty": 1,
    "no_repeat_ngram_size": 0,
    "penalty_alpha": 0,
    "smoothing_factor": 0,
    "smoothing_curve": 1,
    "skew": 0,
    "dynatemp_range": 0,
    "dynatemp_low": 1,
    "dynatemp_high": 1,
    "dynatemp_exponent": 1,
    "dynamic_temperature": False,
    "adaptive_target": -0.01,
    "adaptive_decay": 0.9,
    "samplers": ["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature", "adaptive_p"],
    "sampler_order": [6, 0, 1, 3, 4, 2, 5],
    "n": 1,
    "n_probs": 0,
    "logit_bias": [[98, 2.5], [99, False]],
    "grammar": "",
    "negative_prompt": "",
    "guidance_scale": 1,
    "ignore_eos": False,
    "ban_eos_token": False,
    "skip_special_tokens": True,
    "add_bos_token": True,
    "truncation_length": 4096,
    "num_ctx": 4096,
    "min_length": 0,
    "min_tokens": 0,
    "speculative_ngram": False,
    "cache_prompt": True,
    "stop": ["\nYou:"],
    "stopping_strings": ["\nYou:"],
    "api_type": "llamacpp",
    "api_server": "http://127.0.0.1:8080",
}


def engine(*texts: str, n_fim: int = 5) -> FakeEngine:
    facts = msgspec.structs.replace(FACTS, chat_template=TEMPLATE, n_ctx=4096)
    return FakeEngine(facts=facts, tokenizer=FakeTokenizer(n_fim=n_fim), script=lambda _: say(*texts))


async def post(one: FakeEngine, path: str, body: dict[str, Any]) -> Any:
    async with client(one) as web:
        reply = await web.post(path, json=body)
    assert reply.status_code == 200, reply.text
    return reply


async def test_llama_vscode_gets_a_list() -> None:
    one = engine("return x")
    value = (await post(one, "/infill", LLAMA_VSCODE)).json()
    assert [item["content"] for item in value] == ["return x"] * 3 and len(one.streams) == 3
    async with client(one) as web:
        refused = await web.post("/infill", json={**LLAMA_VSCODE, "n_cmpl": 9999})
    assert refused.status_code == 400 and "Field 'n_cmpl'" in refused.json()["error"]["message"]


async def test_llama_vim_instructs_with_a_growing_slot_number() -> None:
    one = engine("done")
    body = {
        "id_slot": 4711,
        "messages": [{"role": "system", "content": "Edit."}, {"role": "user", "content": "x"}],
        "samplers": ["min_p", "temperature"],
        "min_p": 0.1,
        "temperature": 0.1,
        "cache_prompt": True,
        "stream": True,
        "model": "",
    }
    chunks = objects((await post(one, "/v1/chat/completions", body)).text)
    assert "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"]) == "done"
    warm = {**body, "stream": False, "n_predict": 0, "response_fields": [""]}
    assert (await post(one, "/v1/chat/completions", warm)).text == "{}" and one.last.max_tokens == 0


async def test_continue_streams_the_native_route() -> None:
    one = engine("x = ", "1")
    found = objects((await post(one, "/completion", CONTINUE)).text)
    assert "".join(frame["content"] for frame in found) == "x = 1" and found[-1]["stop"] is True
    assert one.tokenizer.detokenize(one.last.prompt) == CONTINUE["prompt"] and one.last.prompt[0] == 260


async def test_zed_predicts_edits() -> None:
    value = (await post(engine("x"), "/v1/completions", ZED)).json()
    assert all(isinstance(value[key], kind) for key, kind in (("id", str), ("object", str), ("created", int), ("model", str)))
    assert value["choices"][0]["text"] == "x"
    assert all(type(value["usage"][f"{name}_tokens"]) is int for name in ("prompt", "completion", "total"))


@pytest.mark.parametrize("n_fim", [0, 3])
async def test_copilots_kind_of_completion(n_fim: int) -> None:
    one = engine("return 1", n_fim=n_fim)
    chunks = objects((await post(one, "/v1/completions", COPILOT)).text)
    text = "".join(choice["text"] for chunk in chunks for choice in chunk["choices"])
    assert text == ("return 1" if n_fim else "return 1\n")
    assert (261 in one.last.prompt) is bool(n_fim)


async def test_silly_taverns_many_fields() -> None:
    one = engine("upon a time")
    value = (await post(one, "/completion", SILLY_TAVERN)).json()
    assert value["content"] == "upon a time"
    used = one.last
    assert used.max_tokens == 80 and used.constraint is None and used.stop == ("\nYou:",)
    assert used.sampling.samplers == tuple(SILLY_TAVERN["samplers"]) and used.sampling.min_p == 0.1
    found = objects((await post(one, "/completion", {**SILLY_TAVERN, "n": 2, "n_probs": 2, "stream": True})).text)
    assert {frame["index"] for frame in found} == {0, 1}
    # A piece with one of these names would be shown as an error.
    assert not any({"error", "message", "detail"} & frame.keys() for frame in found)


async def test_what_they_look_up_first() -> None:
    one = engine()
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}]
    async with client(one) as web:
        models = (await web.get("/v1/models")).json()
        props = (await web.get("/props", params={"model": "m", "autoload": "false"})).json()
        asked = {"messages": [{"role": "user", "content": "hi"}], "tools": tools, "tool_choice": "auto"}
        prompt = (await web.post("/apply-template", json=asked)).json()["prompt"]
        asked = {"model": "m", "content": prompt, "add_special": False, "parse_special": True}
        tokens = (await web.post("/tokenize", json=asked)).json()["tokens"]
        health = await web.get("/health")
    (model,) = models["data"]
    # `status` would make clients look for a server that loads and unloads models.
    assert "status" not in model and model["meta"]["n_ctx"] == 4096
    assert props["default_generation_settings"]["n_ctx"] == 4096 and props["chat_template"] == TEMPLATE
    assert "weather" in prompt and len(tokens) > 4 and health.status_code == 200
    assert props["modalities"]["vision"] is False
    caps = props["chat_template_caps"]
    assert re.search("true", str(caps.get("supports_tools")), re.I) or caps["supports_tool_calls"]
