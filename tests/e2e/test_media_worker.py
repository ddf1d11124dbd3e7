"""Pictures through a real worker process: answers that outlive it, and what is refused before or by it."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from puna.client.handle import EngineClient
from puna.config import EngineSettings
from puna.errors import ContextExceeded, InvalidRequest, NotSupported, StartupError, TooLarge
from puna.llama.model import Model
from puna.llama.vocab import Vocab
from puna.media import MEDIA, Media
from puna.types import Generation, Sampling
from tests.engine.media import picture, sound, write_pair
from tests.tiny import write_projector
from tests.unit.client.helpers import collect, tokens

FREE = Sampling(temperature=0, ignore_eos=True)
SHOWN = picture()
PROMPT = (1, *range(270, 300), MEDIA, *range(300, 320))


def vocab(path: str) -> Vocab:
    model = Model(path, vocab_only=True)
    KEPT.append(model)
    return model.vocab


KEPT: list[Model] = []


@pytest.fixture(scope="module")
def pair(tiny_folder: Path) -> tuple[Path, Path]:
    return write_pair(tiny_folder, "qwen2vl")


@pytest.fixture
async def client(pair: tuple[Path, Path]) -> AsyncIterator[EngineClient[Vocab]]:
    settings = EngineSettings(model=str(pair[0]), mmproj=str(pair[1]), n_ctx=512, n_threads=1, calibrate=False)
    made = EngineClient(settings, vocab)
    await made.start()
    yield made
    await made.stop()


def asked(n: int = 40, *, media: tuple[Media, ...] = (SHOWN,), prompt: tuple[int, ...] = PROMPT) -> Generation:
    return Generation(prompt=prompt, media=media, max_tokens=n, sampling=FREE)


async def test_an_answer_about_a_picture_outlives_its_worker(client: EngineClient[Vocab]) -> None:
    whole = tokens(await collect(client.generate(asked(200))))
    stream = client.generate(asked(200))
    chunks = [await anext(aiter(stream))]
    pid = client.worker_pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    chunks += await collect(stream)
    assert client.restarts == 1
    assert tokens(chunks)[:20] == whole[:20]
    assert len(tokens(chunks)) == 200
    timings = chunks[-1].timings
    assert timings is not None
    assert timings.cache_n + timings.prompt_n == len(PROMPT) - 1 + 12 + 25, "with the picture and the texts around it"


async def test_what_is_read_what_is_kept_and_what_is_refused(client: EngineClient[Vocab]) -> None:
    for expected in (1.0, 0.05):
        chunks = await collect(client.generate(asked(4)))
        timings = chunks[-1].timings
        assert timings is not None
        assert timings.prompt_n <= expected * (timings.cache_n + timings.prompt_n)
    assert client.stats.media_encoded == 1
    tasks = [task for slot in client.slots if (task := client.slot_task(slot.id)) is not None]
    assert tasks and all(not one.data for task in tasks for one in task.generation.media), "no pixels of what has ended"
    with pytest.raises(InvalidRequest, match="2 places for pictures and sounds, and 1 came"):
        client.generate(asked(prompt=(*PROMPT, MEDIA)))
    with pytest.raises(NotSupported, match="takes pictures, but no sound"):
        client.generate(asked(media=(sound(),)))
    with pytest.raises(InvalidRequest, match="a picture of 7 x 7 pixels does not have 10 bytes"):
        client.generate(asked(media=(Media(kind="image", digest="x", data=b"0123456789", width=7, height=7),)))
    with pytest.raises(InvalidRequest, match="no probabilities"):
        client.generate(Generation(prompt=PROMPT, media=(SHOWN,), prompt_probs=True))
    huge = Media(kind="image", digest="x", data=bytes(3 * 9000 * 9000), width=9000, height=9000)
    with pytest.raises(TooLarge):
        client.generate(asked(media=(huge,)))
    long = (*range(270, 270 + 200), *range(270, 270 + 200), *range(270, 270 + 90), MEDIA)
    with pytest.raises(ContextExceeded) as error:
        await collect(client.generate(asked(prompt=long)))
    assert (error.value.n_prompt_tokens > 512, error.value.n_ctx) == (True, 512)
    assert len(tokens(await collect(client.generate(asked(4))))) == 4, "and the next one is answered"


async def test_a_projector_that_does_not_fit_is_said_at_the_start(pair: tuple[Path, Path], tmp_path: Path) -> None:
    wrong = write_projector(tmp_path / "wrong.gguf", vision="qwen2vl", n_text=128)
    client = EngineClient(EngineSettings(model=str(pair[0]), mmproj=str(wrong), n_ctx=512, calibrate=False), vocab)
    with pytest.raises(StartupError, match="n_embd = 128"):
        await client.start()
    await client.stop()


async def test_what_pictures_take_counts_where_they_are_embedded(pair: tuple[Path, Path]) -> None:
    settings = EngineSettings(
        model=str(pair[0]), mmproj=str(pair[1]), n_ctx=512, n_threads=1, calibrate=False, embeddings=True, pooling="last"
    )
    client = EngineClient(settings, vocab)
    await client.start()
    vectors = client.embed([PROMPT, PROMPT[:5]], media=[(SHOWN,), ()])
    found = await vectors.all()
    assert [len(one) for one in found] == [4 * 64] * 2
    assert vectors.sizes == [len(PROMPT) - 1 + 12 + 25, 5]
    await client.stop()
