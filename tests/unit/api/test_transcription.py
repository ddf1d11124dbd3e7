"""Speech made into text: bodies of both kinds, every form of reply, and what is refused."""

from __future__ import annotations

import base64
import itertools
from collections.abc import AsyncIterator
from typing import Any

import httpx
import numpy as np
import openai
import pytest
from msgspec.structs import replace

from puna.api.multipart import parse_form
from puna.api.transcription.trimmed import Trimmed
from puna.errors import InvalidRequest
from puna.media import MediaFacts
from tests.fakes import FACTS, FakeEngine, FakeTokenizer, say
from tests.unit.mediafiles.samples import sound, tone
from tests.web import client, objects

PATH = "/v1/audio/transcriptions"
HEARS = MediaFacts(path="/m/mmproj.gguf", vision=False, audio=True, audio_rate=8_000)
SILENCE = sound(np.zeros(16_000))
TEMPLATE = "{% for m in messages %}[{{ m.content }}]{% endfor %}"
FORMS = ["json", "text", "verbose_json", "srt", "vtt"]


def engine(media: MediaFacts | None = HEARS) -> FakeEngine:
    return FakeEngine(facts=replace(FACTS, media=media), script=lambda _: say(" \n Hello", " wor", "ld \n", n_prompt=150))


async def post(used: FakeEngine, data: Any = None, file: Any = ("a.wav", SILENCE), **options: Any) -> httpx.Response:
    files = {"file": file} if file is not None else {"other": ("x", b"x")}
    async with client(used, chat_template=TEMPLATE, **options) as http:
        return await http.post(PATH, data=data or {}, files=files)


async def test_the_sound_is_asked_about() -> None:
    used = engine()
    reply = await post(used, {"model": "any", "language": "de", "prompt": "Zürich, Aare", "max_tokens": "7", "unknown": "x"})
    assert reply.status_code == 200, reply.text
    assert set(reply.json()) == {"text", "usage"} and reply.json()["text"] == "Hello world"
    usage = reply.json()["usage"]
    assert usage["input_tokens"] == 150 and usage["output_tokens"] == usage["total_tokens"] - 150 == len(" \n Hello world \n")
    assert sum(usage["input_token_details"].values()) == 150
    asked = FakeTokenizer().detokenize(used.last.prompt)
    assert asked.endswith("<__media__>]") and "Language: de" in asked and "Zürich, Aare" in asked
    assert used.last.max_tokens == 7 and used.last.sampling.temperature == 0
    assert [(one.kind, len(one.data)) for one in used.last.media] == [("audio", 4 * 8_000)]


@pytest.mark.parametrize("form", FORMS)
async def test_forms_of_replies(form: str) -> None:
    reply = await post(engine(), {"response_format": form, "language": "en"})
    kind = {"text": "text/plain", "srt": "application/x-subrip", "vtt": "text/vtt"}.get(form, "application/json")
    assert reply.status_code == 200 and reply.headers["content-type"].startswith(kind)
    if form == "text":
        assert reply.text == "Hello world"
    elif form == "srt":
        assert reply.text == "1\n00:00:00,000 --> 00:00:01,000\nHello world\n"
    elif form == "vtt":
        assert reply.text == "WEBVTT\n\n00:00:00.000 --> 00:00:01.000\nHello world\n"
    elif form == "verbose_json":
        value = reply.json()
        assert (value["task"], value["language"], value["duration"], value["text"]) == ("transcribe", "en", 1.0, "Hello world")
        (segment,) = value["segments"]
        assert (segment["start"], segment["end"], segment["text"]) == (0.0, 1.0, "Hello world")
        assert (segment["avg_logprob"], segment["no_speech_prob"]) == (None, None)
        assert 0 < segment["compression_ratio"] < 1
        assert value["usage"] == {"type": "duration", "seconds": 1.0}


async def test_how_sure_the_model_was() -> None:
    script = say("la " * 40, probs=True, n_prompt=150)
    used = FakeEngine(facts=replace(FACTS, media=HEARS), script=lambda _: script)
    (segment,) = (await post(used, {"response_format": "verbose_json"})).json()["segments"]
    assert segment["avg_logprob"] == -0.5 and segment["compression_ratio"] > 5
    assert used.last.sampling.n_probs == 1


async def test_streams() -> None:
    reply = await post(engine(), {"stream": "true"})
    assert reply.headers["content-type"].startswith("text/event-stream")
    *deltas, done = objects(reply.text)
    assert {frame["type"] for frame in deltas} == {"transcript.text.delta"} and done["type"] == "transcript.text.done"
    assert "".join(frame["delta"] for frame in deltas) == done["text"] == "Hello world"
    assert done["usage"]["input_tokens"] == 150


async def test_json_bodies() -> None:
    used = engine()
    body = {"input_audio": {"data": base64.b64encode(tone(0.5)).decode(), "format": "wav"}, "temperature": 0.5}
    async with client(used, chat_template=TEMPLATE) as http:
        reply = await http.post("/audio/transcriptions", json=body)
        assert reply.json()["text"] == "Hello world" and used.last.sampling.temperature == 0.5
        for bad, field in (
            ({}, "input_audio"),
            ({"input_audio": {"data": "%%"}}, "input_audio.data"),
            ({"input_audio": 5}, "input_audio"),
        ):
            reply = await http.post(PATH, json=bad)
            assert (reply.status_code, reply.json()["error"]["param"]) == (400, field)


async def test_forms_in_pieces_without_a_length() -> None:
    boundary = "x-y-z"
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'.encode()
    raw = head + SILENCE + f"\r\n--{boundary}--\r\n".encode()

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(raw), 1_000):
            yield raw[start : start + 1_000]

    async with client(engine(), chat_template=TEMPLATE) as http:
        headers = {"content-type": f"multipart/form-data; boundary={boundary}"}
        reply = await http.post(PATH, content=pieces(), headers=headers)
    assert "content-length" not in reply.request.headers and reply.json()["text"] == "Hello world"


@pytest.mark.parametrize(
    ("data", "file", "param"),
    [
        ({}, None, "file"),
        ({}, ("a.wav", b""), "file"),
        ({}, ("a.wav", b"this is text, whatever it is called"), "file"),
        ({}, ("a.wav", SILENCE[:30]), "file"),
        ({}, ("a.wav", sound(np.zeros(0))), "file"),
        ({"response_format": "xml"}, ("a", SILENCE), "response_format"),
        ({"temperature": "hot"}, ("a", SILENCE), "temperature"),
        ({"temperature": "nan"}, ("a", SILENCE), "temperature"),
        ({"stream": "perhaps"}, ("a", SILENCE), "stream"),
        ({"max_tokens": "-1"}, ("a", SILENCE), "max_tokens"),
        ({"timestamp_granularities[]": ["word", "segment"]}, ("a", SILENCE), "timestamp_granularities"),
        ({"include[]": ["logprobs"]}, ("a", SILENCE), "include"),
        ({"chunking_strategy": "server_vad"}, ("a", SILENCE), "chunking_strategy"),
        ({"stream": "true", "response_format": "srt"}, ("a", SILENCE), "response_format"),
    ],
)
async def test_what_is_refused(data: Any, file: Any, param: str) -> None:
    used = engine()
    reply = await post(used, data, file)
    error = reply.json()["error"]
    assert (reply.status_code, error["param"], used.streams) == (400, param, []), reply.text
    assert error["message"]


@pytest.mark.parametrize("media", [None, replace(HEARS, audio=False, vision=True)])
async def test_models_that_do_not_hear(media: MediaFacts | None) -> None:
    reply = await post(engine(media))
    assert reply.status_code == 501 and reply.json()["error"]["type"] == "not_supported_error"


async def test_too_large() -> None:
    reply = await post(engine(), max_body=10_000)
    assert reply.status_code == 413 and reply.json()["error"]["message"]


def part(name: str, data: bytes, filename: str | None = None) -> bytes:
    file = "" if filename is None else f'; filename="{filename}"'
    return f'--B\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'.encode() + data + b"\r\n"


KIND = "multipart/form-data; boundary=B"


def test_forms_are_read() -> None:
    form = parse_form(part("a[]", b"1") + part("a[]", "ü".encode()) + part("f", b"\r\n--C\0", "x/y.wav") + b"--B--\r\n", KIND)
    assert form.values == {"a": ["1", "ü"]} and form.files["f"].data == b"\r\n--C\0" and form.files["f"].filename == "x/y.wav"


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b"", KIND),
        (b"x", KIND),
        (part("a", b"1"), KIND),
        (part("a", b"1") + b"--B", KIND),
        (part("a", b"\xff") + b"--B--\r\n", KIND),
        (part("a", bytes(2 << 20)) + b"--B--\r\n", KIND),
        (part("a", b"1") * 300 + b"--B--\r\n", KIND),
        (part("a", b"1") + b"--B--\r\n", "multipart/form-data"),
        (b"a=1", "application/x-www-form-urlencoded"),
        (b"a", ""),
    ],
)
async def test_bad_forms_are_refused(raw: bytes, kind: str) -> None:
    with pytest.raises(InvalidRequest):
        parse_form(raw, kind)
    async with client(engine(), chat_template=TEMPLATE) as http:
        reply = await http.post(PATH, content=raw, headers={"content-type": kind})
    assert reply.status_code == 400 and reply.json()["error"]["message"]


def test_blanks_are_cut_wherever_the_text_is_split() -> None:
    for text in (" \n a  b\t c \n", "", "   ", "a", " a"):
        for cuts in itertools.combinations(range(len(text) + 1), 2):
            trimmed = Trimmed()
            places = [0, *cuts, len(text)]
            assert "".join(trimmed.feed(text[a:b]) for a, b in itertools.pairwise(places)) == text.strip()


async def test_openais_sdk_reads_all_forms() -> None:
    async with client(engine(), chat_template=TEMPLATE) as http:
        inner: Any = http
        sdk = openai.AsyncOpenAI(base_url="http://localhost/v1", api_key="x", http_client=inner)
        create: Any = sdk.audio.transcriptions.create
        assert (await create(model="m", file=("a.wav", SILENCE))).text == "Hello world"
        assert "Hello world" in await create(model="m", file=("a.wav", SILENCE), response_format="text")
        verbose = await create(
            model="m", file=("a.wav", SILENCE), response_format="verbose_json", timestamp_granularities=["segment"]
        )
        assert verbose.duration == 1.0 and verbose.segments[0].text == "Hello world"
        events = [event async for event in await create(model="m", file=("a.wav", SILENCE), stream=True)]
        assert events[-1].text == "Hello world"
