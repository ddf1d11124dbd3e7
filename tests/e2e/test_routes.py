"""Every route on a real server, and the OpenAI SDK as a client of it."""

from __future__ import annotations

import openai
import pytest

from tests import tiny
from tests.e2e.dialects import CHAT, NATIVE, forced
from tests.e2e.server import Server

VOCAB = tiny.spm_vocab()


def test_health_and_models(tiny_server: Server) -> None:
    for path in ("/health", "/v1/health"):
        assert tiny_server.get(path).json() == {"status": "ok"}
    for path in ("/v1/models", "/models"):
        reply = tiny_server.get(path).json()
        assert reply["object"] == "list"
        (model,) = reply["data"]
        assert model["id"] == "tiny-llama" and model["object"] == "model"
        assert model["meta"]["n_vocab"] == len(VOCAB)
        assert model["meta"]["n_ctx_train"] == 2048


def test_props_and_slots(tiny_server: Server) -> None:
    props = tiny_server.get("/props").json()
    assert props["total_slots"] == 4
    assert props["chat_template"] == tiny.CHATML
    assert props["default_generation_settings"]["n_ctx"] == 1024
    assert (props["calibration"]["source"], props["calibration"]["layout"]) == ("rules", "split")
    assert "flash attention off, " in tiny_server.log
    slots = tiny_server.slots()
    assert [slot["id"] for slot in slots] == [0, 1, 2, 3]
    assert all(slot["n_ctx"] == 1024 and slot["is_processing"] is False for slot in slots)


def test_metrics_count(tiny_server: Server) -> None:
    before = tiny_server.metric("llamacpp:tokens_predicted_total")
    tiny_server.json("/completion", NATIVE.body("x", n_predict=7, ignore_eos=True))
    assert tiny_server.metric("llamacpp:tokens_predicted_total") - before == 7
    text = tiny_server.get("/metrics").text
    for name in ("prompt_tokens_total", "requests_processing", "requests_deferred", "n_decode_total"):
        assert f"\nllamacpp:{name} " in text, name
    assert "_bucket{" in text, "there are histograms"


def test_native_replies_have_their_fields(tiny_server: Server) -> None:
    reply = tiny_server.json("/completion", NATIVE.body("the water", n_predict=5, seed=11, temperature=0.5, ignore_eos=True))
    names = (
        "index content tokens id_slot stop model tokens_predicted tokens_evaluated generation_settings prompt has_new_line "
        "truncated stop_type stopping_word tokens_cached timings"
    )
    assert set(names.split()) <= set(reply)
    assert reply["stop"] is True and reply["tokens"] == [] and reply["truncated"] is False
    assert reply["prompt"].endswith("the water")
    settings = reply["generation_settings"]
    assert (settings["seed"], settings["temperature"], settings["n_predict"]) == (11, 0.5, 5)
    timings = reply["timings"]
    assert timings["predicted_n"] == 5
    assert timings["prompt_n"] + timings["cache_n"] == reply["tokens_evaluated"]
    assert timings["predicted_per_second"] > 0


def test_several_prompts_make_a_list(tiny_server: Server) -> None:
    tokens = tiny_server.json("/tokenize", {"content": "hello"})["tokens"]
    reply = tiny_server.json("/completion", {"prompt": ["a", tokens, [1, "b"]], "n_predict": 2})
    assert [item["index"] for item in reply] == [0, 1, 2]
    mixed = tiny_server.json("/completion", {"prompt": [1, "hello", tokens[-1]], "n_predict": 2})
    assert mixed["tokens_predicted"] == 2


@pytest.mark.parametrize("text", ["hello world", "a\n\nb", "漢😀", "  two  spaces", "\u0000\u007f"])
def test_text_survives_tokens(tiny_server: Server, text: str) -> None:
    tokens = tiny_server.json("/tokenize", {"content": text})["tokens"]
    # This kind of vocabulary puts a space in front of every text, and tokens are spelled as they are.
    assert tiny_server.json("/detokenize", {"tokens": tokens})["content"] == " " + text


def test_tokenize_has_options(tiny_server: Server) -> None:
    plain = tiny_server.json("/tokenize", {"content": "hello"})["tokens"]
    special = tiny_server.json("/tokenize", {"content": "hello", "add_special": True})["tokens"]
    assert special == [VOCAB.special["bos"], *plain]
    marker = VOCAB.id("<|im_start|>")
    assert marker in tiny_server.json("/tokenize", {"content": "<|im_start|>"})["tokens"]
    assert marker not in tiny_server.json("/tokenize", {"content": "<|im_start|>", "parse_special": False})["tokens"]
    pieces = tiny_server.json("/tokenize", {"content": "😀", "with_pieces": True})["tokens"]
    spelled = b"".join(bytes(p["piece"]) if isinstance(p["piece"], list) else p["piece"].encode() for p in pieces)
    assert spelled.strip() == "😀".encode()
    assert any(isinstance(piece["piece"], list) for piece in pieces)


def test_apply_template(tiny_server: Server) -> None:
    messages = [{"role": "developer", "content": "Be brief"}, {"role": "user", "content": [{"type": "text", "text": "hi"}]}]
    prompt = tiny_server.json("/apply-template", {"messages": messages})["prompt"]
    assert prompt.count("Be brief") == 1
    assert prompt.index("Be brief") < prompt.index("hi")
    assert prompt.endswith("<|im_start|>assistant\n")
    assert "developer" not in prompt and "<|im_start|>system" in prompt


def test_a_prompt_that_starts_with_bos_does_not_get_two(tiny_server: Server) -> None:
    plain = tiny_server.json("/completion", NATIVE.body("x", n_predict=1))["tokens_evaluated"]
    assert tiny_server.json("/completion", NATIVE.body("<s>x", n_predict=1))["tokens_evaluated"] in (plain, plain + 1)


def test_the_documentation_page(tiny_server: Server) -> None:
    page = tiny_server.get("/docs")
    assert page.status_code == 200 and "text/html" in page.headers["content-type"]
    paths = tiny_server.get("/openapi.json").json()["paths"]
    assert {"/health", "/v1/models", "/props", "/slots", "/metrics", "/completion", "/tokenize", CHAT.path} <= set(paths)


def test_the_openai_sdk_works(tiny_server: Server) -> None:
    client = openai.OpenAI(base_url=tiny_server.url + "/v1", api_key="none", max_retries=0)
    grammar = {"grammar": forced("hello 😀 world")}
    whole = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}], extra_body=grammar)
    assert whole.choices[0].message.content == "hello 😀 world"
    stream = client.chat.completions.create(
        model="m",
        messages=[{"role": "user", "content": "hi"}],
        stream=True,
        stream_options={"include_usage": True},
        extra_body=grammar,
    )
    chunks = list(stream)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "hello 😀 world"
    assert chunks[-1].usage is not None and whole.usage is not None
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    assert client.completions.create(model="m", prompt="x", extra_body=grammar).choices[0].text == "hello 😀 world"
    assert [model.id for model in client.models.list()] == ["tiny-llama"]
    with pytest.raises(openai.BadRequestError, match="temperature"):
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}], extra_body={"temperature": "x"})
    client.close()
