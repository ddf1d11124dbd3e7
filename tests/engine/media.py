"""Pictures and sounds for tests, and what the engine's own helper makes of them."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from puna.config import EngineSettings
from puna.llama.batch import Batch
from puna.llama.context import Context
from puna.llama.library import log, mtmd
from puna.llama.media import MARKER, Projector
from puna.llama.model import Model
from puna.media import MEDIA, Media
from tests import tiny
from tests.engine.checking import NOISE
from tests.engine.driver import Answer, Driver
from tests.tiny.projector import Vision

KINDS: tuple[Vision, ...] = ("mlp", "gemma3", "qwen2vl")
"""One whose vectors are read like tokens, one whose see each other, one that knows rows and columns."""

WRITERS: dict[Vision, Callable[[Path], Path]] = {
    "mlp": tiny.write_llama,
    "gemma3": tiny.write_gemma3,
    "qwen2vl": tiny.write_qwen2vl,
}


def picture(width: int = 64, height: int = 48, seed: int = 0) -> Media:
    """Random pixels."""
    data = np.random.default_rng(seed).integers(0, 255, (height, width, 3), dtype=np.uint8).tobytes()
    return Media(kind="image", digest=hashlib.sha256(data).hexdigest(), data=data, width=width, height=height)


def sound(n: int = 16000, seed: int = 0) -> Media:
    """Random samples."""
    data = (np.random.default_rng(seed).standard_normal(n) * 0.1).astype("<f4").tobytes()
    return Media(kind="audio", digest=hashlib.sha256(data).hexdigest(), data=data)


def write_pair(folder: Path, kind: Vision, *, audio: bool = False) -> tuple[Path, Path]:
    """A model and its projector, each in a folder of its own."""
    own = folder / (f"{kind}-audio" if audio else kind)
    own.mkdir(exist_ok=True)
    model, projector = folder / f"{own.name}.gguf", own / "mmproj.gguf"
    if not projector.exists():
        WRITERS[kind](model)
        tiny.write_projector(projector, vision=kind, audio=audio)
    return model, projector


def assert_like_library(settings: EngineSettings, prompt: Sequence[int], media: Sequence[Media], answer: Answer) -> None:
    """Every token of a greedy answer is among the best where libmtmd's own helper reads what came before it."""
    model = Model(settings.model)
    projector = Projector(settings.mmproj, model, n_threads=1)
    context = Context(
        model, n_ctx=2048, n_seq_max=1, n_batch=2048, n_ubatch=512, n_threads=1, n_threads_batch=1, unified=False,
        flash_attention=False,
    )  # fmt: skip
    position, left = 0, list(media)
    tokens: list[int] = []
    for token in (*prompt, None):
        if token is None or token == MEDIA:
            position = _read(context, tokens, position)
            tokens = []
        else:
            tokens.append(token)
        if token == MEDIA:
            position = _read_media(context, projector, left.pop(0), position)
    ends = sorted(model.vocab.end_tokens)  # the tests' requests ignore these
    for token in answer.tokens:
        logits = context.logits(-1)
        assert logits[token] > np.delete(logits, ends).max() - NOISE
        position = _read(context, [token], position)
    context.close()
    projector.close()


def _read(context: Context, tokens: list[int], position: int) -> int:
    if tokens:
        batch = Batch(len(tokens))
        batch.add(tokens, position, 0, n_logits=1)
        context.decode(batch)
    return position + len(tokens)


def _read_media(context: Context, projector: Projector, media: Media, position: int) -> int:
    library = mtmd()
    library.mtmd_helper_log_set(log.callback, None)
    pixels = (ctypes.c_uint8 * len(media.data)).from_buffer_copy(media.data)
    bitmap = library.mtmd_bitmap_init(media.width, media.height, pixels)
    chunks = library.mtmd_input_chunks_init()
    text = library.mtmd_input_text(text=MARKER, text_len=len(MARKER), add_special=False, parse_special=True)
    pointer = projector.pointer
    assert library.mtmd_tokenize(pointer, chunks, ctypes.byref(text), (ctypes.c_void_p * 1)(bitmap), 1) == 0
    after = ctypes.c_int32()
    assert library.mtmd_helper_eval_chunks(pointer, context.pointer, chunks, position, 0, 512, True, ctypes.byref(after)) == 0
    library.mtmd_input_chunks_free(chunks)
    library.mtmd_bitmap_free(bitmap)
    return after.value


class MediaDriver(Driver):
    """A driver of a model with a projector."""

    def __init__(self, pair: tuple[Path, Path], **settings: object) -> None:
        self.settings = EngineSettings(model=str(pair[0]), mmproj=str(pair[1]))
        super().__init__(pair[0], mmproj=str(pair[1]), **settings)

    def prompt(self, *parts: str | Media) -> tuple[tuple[int, ...], tuple[Media, ...]]:
        """A prompt that is made of texts and media: its tokens, and its media."""
        tokens: list[int] = []
        for i, part in enumerate(parts):
            tokens += self.vocab.tokenize(part, add_special=i == 0, parse_special=False) if isinstance(part, str) else [MEDIA]
        return tuple(tokens), tuple(part for part in parts if isinstance(part, Media))

    def ask_about(self, *parts: str | Media, max_tokens: int = 6, **more: object) -> Answer:
        """Send one such request and run to its end."""
        tokens, media = self.prompt(*parts)
        return self.ask(tokens, media=media, max_tokens=max_tokens, **more)

    def submit_about(self, *parts: str | Media, max_tokens: int = 6, **more: object) -> Answer:
        """Send one such request."""
        tokens, media = self.prompt(*parts)
        return self.submit(tokens, media=media, max_tokens=max_tokens, **more)  # type: ignore[arg-type]  # passed on

    def check(self, answer: Answer, *parts: str | Media) -> None:
        """An answer to these parts is like the library's."""
        assert answer.error == "" and answer.tokens
        assert_like_library(self.settings, *self.prompt(*parts), answer)
