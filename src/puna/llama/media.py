"""A projector: what turns pictures and sounds into vectors that stand among a prompt's tokens."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from puna import gguf
from puna.errors import InvalidRequest, StartupError
from puna.llama import library
from puna.llama.batch import IntArray
from puna.llama.context import FloatArray
from puna.llama.library import C, mtmd
from puna.llama.model import Model
from puna.media import Media

MARKER = b"<__media__>"
LEAST_SAMPLES = 400
"""Shorter sounds are filled up with silence: the engine ends the process over a single sample."""
SECTIONS = 4
"""Coordinates of a place in models that know rows and columns."""


class MediaFault(Exception):
    """The projector could not compute this."""


@dataclass(frozen=True, slots=True, eq=False)
class Patch:
    """A run of vectors in a prompt, as much of a picture or a sound as the projector encodes at once."""

    kind: Literal["image", "audio"]
    n_tokens: int
    """Vectors, each in the place of a token."""
    n_pos: int
    """Positions that it takes; fewer than vectors where rows and columns are known."""
    causal: bool
    """Whether a vector sees only those before it. If not, all must be computed at once."""
    base: IntArray
    """Positions of its vectors if it stands at position 0: (sections, n_tokens)."""
    slope: IntArray
    """What each grows by for every position that it stands further back: 0 or 1."""
    handle: Handle = field(repr=False)

    def positions(self, start: int) -> IntArray:
        """Positions of its vectors if it stands at `start`: (sections, n_tokens)."""
        return self.base + self.slope * np.int32(start)


class Handle:
    """Owns an `mtmd_input_chunk`: what was made of the pixels or samples."""

    def __init__(self, pointer: Any) -> None:
        self.pointer = pointer

    def __del__(self) -> None:
        if self.pointer:
            mtmd().mtmd_input_chunk_free(self.pointer)
            self.pointer = None


Part = tuple[int, ...] | Patch
"""Tokens that a family of models wants around media, or vectors."""


class Projector:
    """Owns an `mtmd_context`. `expand` may run on another thread than `encode`, but no two of one kind at once."""

    def __init__(
        self,
        path: str,
        model: Model,
        *,
        n_threads: int,
        offload: bool = True,
        image_min_tokens: int = 0,
        image_max_tokens: int = 0,
    ) -> None:
        """Load the file for a model. Raises `StartupError` with the engine's own reason when that fails."""
        library.start()
        header = gguf.read_header(path, what="projector")
        if header.architecture != "clip":
            raise StartupError(f"{path} is no projector: its architecture is {header.architecture or 'not named'}")
        if header.missing_bytes:
            raise StartupError(f"{path} is cut short: {header.missing_bytes} bytes are missing")
        self._m = m = mtmd()
        params = m.mtmd_context_params_default()
        params.use_gpu = offload
        params.print_timings = False
        params.n_threads = n_threads
        params.media_marker = MARKER
        params.warmup = True
        params.image_min_tokens = image_min_tokens or -1
        params.image_max_tokens = image_max_tokens or -1
        library.log.take_problems()
        self._p = m.mtmd_init_from_file(path.encode(), model.pointer, params)
        if not self._p:
            reason = "; ".join(library.log.take_problems()[-3:]) or "unknown reason"
            raise StartupError(f"cannot load the projector {path}: {reason}")
        self.path = path
        self.n_bytes = header.file_bytes
        self.vision = bool(m.mtmd_support_vision(self._p))
        self.audio = bool(m.mtmd_support_audio(self._p))
        self.audio_rate = max(0, int(m.mtmd_get_audio_sample_rate(self._p))) if self.audio else 0
        self.n_sections = SECTIONS if m.mtmd_decode_use_mrope(self._p) else 1
        """Coordinates of a position."""
        self.width = int(C.llama_model_n_embd_inp(model.pointer))
        """Floats in a vector."""

    @property
    def pointer(self) -> Any:
        """For the handles of this package, and for comparing with the library's own helpers."""
        return self._p

    def expand(self, media: Media) -> list[Part]:
        """What stands in a prompt for a picture or a sound. Raises `InvalidRequest` for what the projector does not take."""
        m = self._m
        bitmap = self._bitmap(media)
        chunks = m.mtmd_input_chunks_init()
        text = m.mtmd_input_text(text=MARKER, text_len=len(MARKER), add_special=False, parse_special=True)
        bitmaps = (ctypes.c_void_p * 1)(bitmap)
        library.log.take_problems()
        try:
            code = m.mtmd_tokenize(self._p, chunks, ctypes.byref(text), bitmaps, 1)
            if code:
                reason = "; ".join(library.log.take_problems()[-2:])
                raise InvalidRequest(f"the model does not take this {_NAMES[media.kind]}: {reason or f'code {code}'}")
            return [self._part(m.mtmd_input_chunks_get(chunks, i)) for i in range(m.mtmd_input_chunks_size(chunks))]
        finally:
            m.mtmd_input_chunks_free(chunks)
            m.mtmd_bitmap_free(bitmap)

    def _bitmap(self, media: Media) -> Any:
        if media.kind == "image":
            pixels = (ctypes.c_uint8 * len(media.data)).from_buffer_copy(media.data)
            return self._m.mtmd_bitmap_init(media.width, media.height, pixels)
        samples = np.frombuffer(media.data, "<f4")
        if len(samples) < LEAST_SAMPLES:
            samples = np.concatenate([samples, np.zeros(LEAST_SAMPLES - len(samples), np.float32)])
        samples = np.ascontiguousarray(np.nan_to_num(samples, posinf=0, neginf=0), np.float32)
        return self._m.mtmd_bitmap_init_from_audio(len(samples), ctypes.cast(samples.ctypes.data, ctypes.POINTER(ctypes.c_float)))

    def _part(self, chunk: Any) -> Part:
        m = self._m
        kind = m.mtmd_input_chunk_get_type(chunk)
        if kind == m.MTMD_INPUT_CHUNK_TYPE_TEXT:
            n = ctypes.c_size_t()
            tokens = m.mtmd_input_chunk_get_tokens_text(chunk, ctypes.byref(n))
            text = tuple(tokens[i] for i in range(n.value))
            if min(text, default=0) < 0:
                raise MediaFault("the model's vocabulary lacks tokens that its projector needs")
            return text
        n_tokens = int(m.mtmd_input_chunk_get_n_tokens(chunk))
        at_0, at_1 = (self._positions(chunk, kind, n_tokens, start) for start in (0, 1))
        return Patch(
            kind="image" if kind == m.MTMD_INPUT_CHUNK_TYPE_IMAGE else "audio",
            n_tokens=n_tokens,
            n_pos=int(m.mtmd_input_chunk_get_n_pos(chunk)),
            causal=not m.mtmd_decode_use_non_causal(self._p, chunk),
            base=at_0,
            slope=at_1 - at_0,
            handle=Handle(m.mtmd_input_chunk_copy(chunk)),
        )

    def _positions(self, chunk: Any, kind: int, n_tokens: int, start: int) -> IntArray:
        line = np.arange(start, start + n_tokens, dtype=np.int32)
        if self.n_sections == 1 or kind == self._m.MTMD_INPUT_CHUNK_TYPE_AUDIO:
            return np.tile(line, (self.n_sections, 1))
        tokens = self._m.mtmd_input_chunk_get_tokens_image(chunk)
        places = [self._m.mtmd_image_tokens_get_decoder_pos(tokens, start, i) for i in range(n_tokens)]
        return np.array([[p.t, p.y, p.x, p.z] for p in places], np.uint32).T.astype(np.int32)

    def encode(self, patch: Patch) -> FloatArray:
        """Its vectors, (n_tokens, width). Raises `MediaFault` when they cannot be computed, or are no numbers."""
        library.log.take_problems()
        code = self._m.mtmd_encode_chunk(self._p, patch.handle.pointer)
        if code:
            raise MediaFault("; ".join(library.log.take_problems()[-2:]) or f"encoding failed with code {code}")
        pointer = self._m.mtmd_get_output_embd(self._p)
        vectors: npt.NDArray[np.float32] = np.ctypeslib.as_array(pointer, shape=(patch.n_tokens, self.width)).copy()
        if not np.isfinite(vectors).all():
            raise MediaFault("the projector's numbers grow beyond all bounds")
        return vectors

    def close(self) -> None:
        if self._p:
            self._m.mtmd_free(self._p)
            self._p = None


_NAMES = {"image": "picture", "audio": "sound"}
