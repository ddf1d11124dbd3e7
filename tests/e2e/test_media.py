"""Pictures and sounds in every dialect, through a real server with a tiny model that sees and hears."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.e2e.server import Server
from tests.engine.media import write_pair
from tests.unit.mediafiles.samples import moving, saved, tone, uri

WORDS = "Say in a few words what there is to see and to hear."


def noise(seed: int) -> bytes:
    """A picture of random pixels."""
    return saved(Image.fromarray(np.random.default_rng(seed).integers(0, 255, (48, 64, 3), dtype=np.uint8)))


PICTURE, OTHER, SOUND = noise(0), noise(1), tone(1.0)


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def image(data: bytes = PICTURE) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": uri(data)}}


AUDIO = {"type": "input_audio", "input_audio": {"data": base64_of(SOUND), "format": "wav"}}


def chat(*parts: Any) -> dict[str, Any]:
    return {
        "messages": [{"role": "user", "content": [{"type": "text", "text": WORDS}, *parts]}],
        "max_tokens": 4,
        "temperature": 0,
    }


@pytest.fixture(scope="module")
def server(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    model, projector = write_pair(tiny_folder, "mlp", audio=True)
    folder = tmp_path_factory.mktemp("media")
    (folder / "a.png").write_bytes(PICTURE)
    flags = ("-c", "1024", "-np", "2", "-t", "1", "--mmproj", str(projector), "--media-path", str(folder), "--embeddings")
    with Server(model, *flags, "--pooling", "last", log=folder / "log") as made:
        yield made
        made.stop()


def ask(server: Server, path: str, body: dict[str, Any]) -> dict[str, Any]:
    reply = server.client.post(path, json=body)
    assert reply.status_code == 200, reply.text
    value: dict[str, Any] = reply.json()
    return value


def test_what_it_takes_is_said(server: Server) -> None:
    assert server.client.get("/props").json()["modalities"] == {"vision": True, "video": False, "audio": True}
    (model,) = server.client.get("/v1/models").json()["data"]
    assert model["architecture"]["input_modalities"] == ["text", "image", "audio"]


def test_a_picture_is_read_once(server: Server) -> None:
    first, second = (ask(server, "/v1/chat/completions", chat(image())) for _ in range(2))
    assert first["choices"][0]["message"]["content"] == second["choices"][0]["message"]["content"]
    n = first["usage"]["prompt_tokens"]
    assert n == second["usage"]["prompt_tokens"] > len(WORDS) // 8
    assert second["timings"]["prompt_n"] <= max(1, n // 20)
    other = ask(server, "/v1/chat/completions", chat(image(OTHER)))
    assert other["usage"]["prompt_tokens"] == n and other["timings"]["prompt_n"] > second["timings"]["prompt_n"]
    same = ask(server, "/v1/chat/completions", chat({"type": "image_url", "image_url": {"url": "file://a.png"}}))
    assert same["timings"]["prompt_n"] <= max(1, n // 20)


def test_counting_agrees_with_reading(server: Server) -> None:
    body = chat(image(OTHER), AUDIO)
    counted = ask(server, "/v1/chat/completions/input_tokens", body)["input_tokens"]
    assert counted == ask(server, "/v1/chat/completions", body)["usage"]["prompt_tokens"]


def test_every_dialect(server: Server) -> None:
    text = ask(server, "/v1/chat/completions", chat())["usage"]["prompt_tokens"]
    for parts in ([image()], [AUDIO], [image(), image(OTHER), AUDIO]):
        assert ask(server, "/v1/chat/completions", chat(*parts))["usage"]["prompt_tokens"] > text
    items: list[Any] = [{"type": "input_text", "text": WORDS}, {"type": "input_image", "image_url": uri(PICTURE)}, AUDIO]
    found = ask(server, "/v1/responses", {"input": [{"role": "user", "content": items}], "max_output_tokens": 4})
    assert found["usage"]["input_tokens"] > text
    source = {"type": "base64", "media_type": "image/png", "data": base64_of(PICTURE)}
    blocks = [{"type": "text", "text": WORDS}, {"type": "image", "source": source}]
    messages = {"messages": [{"role": "user", "content": blocks}], "max_tokens": 4}
    usage = ask(server, "/v1/messages", messages)["usage"]
    assert usage["input_tokens"] + usage["cache_read_input_tokens"] > text
    prompt = {"prompt_string": "see <__media__> hear <__media__>", "multimodal_data": [base64_of(PICTURE), base64_of(SOUND)]}
    assert ask(server, "/completion", {"prompt": prompt, "n_predict": 4})["tokens_evaluated"] > 20
    assert ask(server, "/v1/completions", {"prompt": prompt, "max_tokens": 4})["usage"]["prompt_tokens"] > 20


def test_moving_pictures(server: Server) -> None:
    one = ask(server, "/v1/chat/completions", chat(image()))["usage"]["prompt_tokens"]
    film = {"type": "input_video", "input_video": {"data": base64_of(moving(n=3))}}
    assert ask(server, "/v1/chat/completions", chat(film))["usage"]["prompt_tokens"] > one


def test_vectors_of_pictures(server: Server) -> None:
    inputs = [{"content": [{"type": "text", "text": "a"}, image(data)]} for data in (PICTURE, OTHER, PICTURE)]
    first, second, third = (np.array(one["embedding"]) for one in ask(server, "/v1/embeddings", {"input": inputs})["data"])
    assert np.allclose(first, third, atol=1e-3) and not np.allclose(first, second, atol=1e-3)


def test_transcripts(server: Server) -> None:
    fields = {"model": "any", "max_tokens": "4", "response_format": "verbose_json"}
    reply = server.client.post("/v1/audio/transcriptions", data=fields, files={"file": ("a.wav", SOUND)})
    assert reply.status_code == 200 and reply.json()["duration"] == pytest.approx(1.0, abs=0.01), reply.text
    body = {"stream": "true", "max_tokens": "4"}
    streamed = server.client.post("/v1/audio/transcriptions", data=body, files={"file": ("a.wav", SOUND)})
    assert "transcript.text.done" in streamed.text


def test_what_is_wrong_harms_nothing(server: Server) -> None:
    bad = [image(PICTURE[:100]), image(b"text"), image(SOUND), image(b"")]
    bad += [{"type": "image_url", "image_url": {"url": url}} for url in ("http://127.0.0.1/x", "file:///etc/passwd")]
    bad.append({"type": "input_audio", "input_audio": {"data": "AAAA"}})
    for part in bad:
        reply = server.client.post("/v1/chat/completions", json=chat(part))
        assert reply.status_code == 400 and reply.json()["error"]["param"].startswith("messages.0.content.1"), reply.text
    long = server.client.post("/v1/chat/completions", json=chat(*[image(noise(seed)) for seed in range(2, 66)]))
    assert long.status_code == 400 and long.json()["error"]["type"] == "exceed_context_size_error", long.text
    assert server.worker_pids() == [server.first_worker]
    assert ask(server, "/v1/chat/completions", chat())["choices"]
