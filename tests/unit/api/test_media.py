"""Pictures and sounds in every dialect: what reaches the engine, and what never does."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from msgspec.structs import replace
from PIL import Image

from puna.media import MEDIA, Media, MediaFacts
from puna.service.media import MARKER
from tests.fakes import FACTS, FakeEngine, FakeTokenizer, say
from tests.unit.mediafiles.samples import moving, quarters, saved, sound, tone, uri
from tests.web import client

RATE = 8_000
BOTH = MediaFacts(path="/m/mmproj.gguf", vision=True, audio=True, audio_rate=RATE)
PICTURE = saved(quarters(4))
OTHER = saved(Image.new("RGB", (3, 2), (9, 8, 7)))
SOUND = tone(0.1)
IMAGE = {"type": "image_url", "image_url": {"url": uri(PICTURE)}}
AUDIO = {"type": "input_audio", "input_audio": {"data": base64.b64encode(SOUND).decode(), "format": "wav"}}
TEMPLATE = "{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}"

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"


def engine(media: MediaFacts | None = BOTH, **facts: Any) -> FakeEngine:
    return FakeEngine(facts=replace(FACTS, media=media, **facts), script=lambda _: say("Hi", n_prompt=40))


def text(prompt: tuple[int, ...]) -> str:
    """A prompt as text, `@` where media stand."""
    return FakeTokenizer().detokenize(prompt).replace("<__media__>", "@")


async def post(path: str, body: Any, used: FakeEngine | None = None, **settings: Any) -> httpx.Response:
    async with client(used or engine(), chat_template=TEMPLATE, **settings) as http:
        return await http.post(path, json=body)


async def prompt(path: str, body: Any, **settings: Any) -> tuple[str, tuple[Media, ...]]:
    """What the engine gets."""
    used = engine()
    reply = await post(path, body, used, **settings)
    assert reply.status_code == 200, reply.text
    assert used.last.prompt.count(MEDIA) == len(used.last.media)
    return text(used.last.prompt), used.last.media


def chat(*parts: Any, role: str = "user") -> dict[str, Any]:
    return {"messages": [{"role": role, "content": list(parts)}], "max_tokens": 4}


def say_text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


async def test_pictures_and_sounds_in_a_chat() -> None:
    found, media = await prompt(CHAT, chat(say_text("a"), IMAGE, say_text("b"), say_text("c"), AUDIO))
    assert found == "[user:a@b\nc@]"
    picture, heard = media
    assert (picture.kind, picture.width, picture.height, picture.data) == ("image", 8, 8, quarters(4).tobytes())
    assert heard.kind == "audio" and len(heard.data) / 4 == pytest.approx(0.1 * RATE, abs=2)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": uri(PICTURE)},
        {"type": "image_url", "image_url": {"url": base64.b64encode(PICTURE).decode(), "detail": "low"}},
        {"type": "input_image", "image_url": uri(PICTURE), "detail": "auto"},
        {"type": "file", "file": {"file_data": uri(PICTURE), "filename": "x.png"}},
        {"type": "video_url", "video_url": {"url": uri(PICTURE)}},
    ],
)
async def test_forms_of_pictures(part: Any) -> None:
    found, media = await prompt(CHAT, chat(part))
    assert found == "[user:@]" and [one.data for one in media] == [quarters(4).tobytes()]


async def test_moving_pictures_are_several() -> None:
    data = base64.b64encode(moving(n=3)).decode()
    found, media = await prompt(CHAT, chat({"type": "input_video", "input_video": {"data": data}}, say_text("?")))
    assert found == "[user:@@@?]" and len({one.digest for one in media}) == 3


@pytest.mark.parametrize("part", [{"type": "audio_url", "audio_url": {"url": uri(SOUND, "audio/wav")}},
                                  {"type": "input_audio", "input_audio": {"url": uri(SOUND, "audio/wav")}}])  # fmt: skip
async def test_forms_of_sounds(part: Any) -> None:
    found, media = await prompt(CHAT, chat(part))
    assert found == "[user:@]" and [one.kind for one in media] == ["audio"]


async def test_pictures_of_the_history_and_of_tools() -> None:
    other = {"type": "image_url", "image_url": {"url": uri(OTHER)}}
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": [IMAGE, say_text("what?")]},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": [say_text("seen:"), other]},
        {"role": "user", "content": [IMAGE]},
    ]
    found, media = await prompt(CHAT, {"messages": messages})
    assert found.count("@") == 3 and [one.width for one in media] == [8, 3, 8] and media[0] is media[2]
    assert found.index("@what?") < found.index("seen:@")


async def test_in_responses() -> None:
    image = {"type": "input_image", "image_url": uri(PICTURE)}
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "a"}, image, AUDIO]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "b"}, image]},
    ]
    found, media = await prompt(RESPONSES, {"input": items})
    assert "a@@" in found and "b@" in found and [one.kind for one in media] == ["image", "audio", "image"]


async def test_a_reply_that_goes_on_has_its_pictures_again() -> None:
    used = engine()
    async with client(used, chat_template=TEMPLATE) as http:
        image = {"type": "input_image", "image_url": uri(PICTURE)}
        first = await http.post(RESPONSES, json={"input": [{"role": "user", "content": [image]}]})
        following = {"input": "and?", "previous_response_id": first.json()["id"]}
        assert (await http.post(RESPONSES, json=following)).status_code == 200
    assert text(used.last.prompt).startswith("[user:@][assistant:Hi]") and len(used.last.media) == 1


async def test_in_messages() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PICTURE).decode()}
    image = {"type": "image", "source": source}
    url = {"type": "image", "source": {"type": "url", "url": uri(OTHER)}}
    messages = [
        {"role": "user", "content": [image, say_text("a")]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [say_text("b"), url]}]},
    ]
    found, media = await prompt(MESSAGES, {"messages": messages, "max_tokens": 4})
    assert "@a" in found and "b@" in found and [one.width for one in media] == [8, 3]
    failed = {"type": "tool_result", "tool_use_id": "t", "is_error": True, "content": [url]}
    found, _ = await prompt(MESSAGES, {"messages": [*messages[:2], {"role": "user", "content": [failed]}], "max_tokens": 4})
    assert "Error:@" in found


async def test_in_native_prompts_and_legacy_ones() -> None:
    data = [base64.b64encode(one).decode() for one in (PICTURE, SOUND)]
    for path in ("/completion", "/v1/completions"):
        found, media = await prompt(
            path, {"prompt": {"prompt_string": f"a{MARKER}b<__media__>{MARKER}", "multimodal_data": data}}
        )
        assert found == "a@b@@" and [one.kind for one in media] == ["image", "audio"]
        found, _ = await prompt(path, {"prompt": {"prompt_string": "<__media__>", "multimodal_data": data[:1]}})
        assert found == "@"
    reply = await post("/v1/completions", {"prompt": {"prompt_string": MARKER, "multimodal_data": data[:1]}, "echo": True})
    assert reply.json()["choices"][0]["text"] == MARKER + "Hi"
    reply = await post("/v1/completions", {"prompt": {"prompt_string": MARKER, "multimodal_data": data[:1]}, "suffix": "x"},
                       FakeEngine(facts=replace(FACTS, media=BOTH), tokenizer=FakeTokenizer(n_fim=3)))  # fmt: skip
    assert reply.status_code == 400 and reply.json()["error"]["param"] == "suffix"


async def test_in_embeddings() -> None:
    used = engine(pooling="mean", n_embd_out=4, n_ctx_pooled=64)
    body = {"input": ["x", {"content": [say_text("a"), IMAGE, say_text("b"), AUDIO]}]}
    reply = await post("/v1/embeddings", body, used)
    assert reply.status_code == 200, reply.text
    assert used.embedded == [[[120], [97, -1, 98, -1]]]
    assert [[one.kind for one in some] for some in used.embedded_media[0]] == [[], ["image", "audio"]]
    native = {"content": {"prompt_string": f"{MARKER}?", "multimodal_data": [base64.b64encode(PICTURE).decode()]}}
    assert (await post("/embedding", native, used)).status_code == 200
    assert used.embedded[1] == [[-1, 63]]


async def test_users_cannot_forge_a_picture() -> None:
    """Text that looks like a marker stays text; a media part that is there keeps its place."""
    found, media = await prompt(CHAT, chat(say_text(f"{MARKER} <__media__> media0n0z"), IMAGE))
    assert found == f"[user:{MARKER} @ media0n0z@]".replace("@ ", "<__media__> ", 1).replace("<__media__>", "@")
    assert len(media) == 1


async def test_templates_are_shown_without_loading_anything() -> None:
    reply = await post("/apply-template", chat(say_text("a"), {"type": "image_url", "image_url": {"url": "https://none.test/x"}}),
                       media_fetch=True)  # fmt: skip
    assert reply.json()["prompt"] == f"[user:a{MARKER}]"


async def test_a_template_that_leaves_a_picture_out_is_an_error() -> None:
    async with client(engine(), chat_template="{{ messages[-1].content }}") as http:
        messages = [{"role": "user", "content": [IMAGE]}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]
        reply = await http.post(CHAT, json={"messages": messages})
    assert reply.status_code == 400 and reply.json()["error"]["param"] == "messages.0.content.0"


@pytest.mark.parametrize("path", ["/v1/chat/completions/input_tokens", "/v1/messages/count_tokens", "/v1/responses/input_tokens"])
async def test_counting_lets_the_engine_read(path: str) -> None:
    used = engine()
    image: dict[str, Any] = {"type": "input_image", "image_url": uri(PICTURE)}
    body: dict[str, Any] = chat(IMAGE)
    if "messages" in path:
        source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PICTURE).decode()}
        body = chat({"type": "image", "source": source})
    if "responses" in path:
        body = {"input": [{"role": "user", "content": [image]}]}
    reply = await post(path, body, used)
    assert reply.json()["input_tokens"] == 40 and used.last.max_tokens == 0
    assert (await post(path, {**body, "input": "x"} if "responses" in path else chat(say_text("x")))).json()["input_tokens"] == 8


async def test_what_a_model_takes_is_said() -> None:
    for media, vision, audio in ((None, False, False), (BOTH, True, True), (replace(BOTH, audio=False), True, False)):
        async with client(engine(media)) as http:
            props = (await http.get("/props")).json()
            models = (await http.get("/v1/models")).json()
        assert props["modalities"] == {"vision": vision, "video": False, "audio": audio} and props["media_marker"] == MARKER
        taken = ["text", *["image"] * vision, *["audio"] * audio]
        assert models["data"][0]["architecture"] == {"input_modalities": taken, "output_modalities": ["text"]}
        assert ("multimodal" in models["models"][0]["capabilities"]) is (vision or audio)


def bad() -> Iterator[tuple[Any, str]]:
    def image(data: bytes) -> Any:
        return {"type": "image_url", "image_url": {"url": uri(data)}}

    def audio(data: bytes) -> Any:
        return {"type": "input_audio", "input_audio": {"data": base64.b64encode(data).decode()}}

    for part in (image(b""), image(b"text"), image(SOUND), image(PICTURE[:60])):
        yield part, "image_url"
    yield {"type": "image_url", "image_url": {"url": "data:image/png;base64,%%%"}}, "image_url"
    yield {"type": "image_url", "image_url": {"url": "http://127.0.0.1:1/x"}}, "image_url"
    yield {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}, "image_url"
    yield {"type": "image_url", "image_url": {"url": 5}}, "image_url"
    yield {"type": "image_url"}, "image_url"
    for part in (audio(b""), audio(b"text"), audio(PICTURE), audio(sound(np.zeros(0)))):
        yield part, "input_audio"
    yield {"type": "file", "file": {"file_id": "f"}}, "file.file_id"
    yield {"type": "input_image", "file_id": "f"}, "file_id"
    yield {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0="}}, "file"


@pytest.mark.parametrize(("part", "field"), list(bad()))
async def test_bad_media_never_reach_the_engine(part: Any, field: str) -> None:
    used = engine()
    reply = await post(CHAT, chat(say_text("a"), part), used)
    error = reply.json()["error"]
    assert reply.status_code == 400 and error["param"] == f"messages.0.content.1.{field}", reply.text
    assert used.streams == []


@pytest.mark.parametrize(
    ("media", "part", "words"),
    [
        (None, IMAGE, "text only"),
        (None, AUDIO, "text only"),
        (replace(BOTH, vision=False), IMAGE, "does not see"),
        (replace(BOTH, audio=False), AUDIO, "does not hear"),
        (replace(BOTH, audio=False), {"type": "file", "file": {"file_data": uri(SOUND, "audio/wav")}}, "does not hear"),
        (BOTH, {"type": "video_url", "video_url": {"url": uri(b"\0\0\0\x18ftypmp42" + bytes(20), "video/mp4")}}, "ffmpeg"),
    ],
)
async def test_what_a_model_does_not_take(media: MediaFacts | None, part: Any, words: str) -> None:
    used = engine(media)
    reply = await post(CHAT, chat(part), used)
    error = reply.json()["error"]
    assert reply.status_code == 501 and words in error["message"] and error["param"] == "messages.0.content.0"
    assert used.streams == []


async def test_files_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PICTURE)
    (tmp_path / "link.png").symlink_to("/etc/passwd")
    for url in ("file://a.png", f"file://{tmp_path}/a.png"):
        found, media = await prompt(CHAT, chat({"type": "image_url", "image_url": {"url": url}}), media_path=str(tmp_path))
        assert found == "[user:@]" and len(media) == 1
    for url in ("file:///etc/passwd", "file://link.png", "file://../a.png", "file://none.png"):
        reply = await post(CHAT, chat({"type": "image_url", "image_url": {"url": url}}), media_path=str(tmp_path))
        assert reply.status_code == 400 and reply.json()["error"]["param"] == "messages.0.content.0.image_url"


async def test_roles_of_messages_where_no_picture_can_stand() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    for body in ({"system": [image], "messages": [{"role": "user", "content": "x"}]},
                 {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": [image]}]}):  # fmt: skip
        assert (await post(MESSAGES, {**body, "max_tokens": 4})).status_code == 400
