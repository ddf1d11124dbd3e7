"""Sounds made into samples: one channel at the rate that the projector wants, read block by block."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from puna.mediafiles.digest import media
from puna.mediafiles.refusal import Refusal
from puna.mediafiles.sniff import content_of
from puna.types import Media

if TYPE_CHECKING:
    from soundfile import SoundFile

MAX_SECONDS = 1800
"""Longest sound: half an hour has 115 MB at 16,000 samples a second."""
MAX_CHANNELS = 32
RATES = (1_000, 768_000)
BLOCK = 1 << 18
"""Samples that are read at once, over all channels."""

READABLE = "WAV, MP3, FLAC, Ogg (Vorbis or Opus) and AIFF"

Samples = npt.NDArray[np.float32]


def decode_sound(data: bytes, rate: int) -> Media:
    """The sound in one channel at `rate` samples a second. Raises `Refusal`.

    A file that was cut is as long as what is left of it.
    """
    import soundfile

    if not data:
        raise Refusal("the sound is empty")
    if content_of(data) != "audio":
        raise Refusal(f"this is no sound of a kind that can be read, which are {READABLE}")
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as file:
            samples = _read(file, rate)
    except Refusal:
        raise
    except Exception as error:  # the decoders and what binds them have many ways to fail
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:120]
        raise Refusal(f"the sound is damaged: {reason}") from error
    return media("audio", samples.astype("<f4", copy=False).tobytes())


def seconds_of(sound: Media, rate: int) -> float:
    """How long a decoded sound is."""
    return len(sound.data) / 4 / rate


def _read(file: SoundFile, rate: int) -> Samples:
    import soxr

    if not RATES[0] <= file.samplerate <= RATES[1]:
        raise Refusal(f"the sound has {file.samplerate} samples a second; {RATES[0]} to {RATES[1]} can be read")
    if not 1 <= file.channels <= MAX_CHANNELS:
        raise Refusal(f"the sound has {file.channels} channels; up to {MAX_CHANNELS} can be read")
    parts: list[Samples] = []
    n = 0
    resampler = None if file.samplerate == rate else soxr.ResampleStream(file.samplerate, rate, 1, dtype="float32")
    for block in _blocks(file):
        if resampler is not None:
            block = resampler.resample_chunk(block)
        parts.append(block)
        n += len(block)
        if n > MAX_SECONDS * rate:
            raise Refusal(f"the sound is longer than {MAX_SECONDS // 60} minutes")
    if not parts:
        raise Refusal("the sound is empty")
    if resampler is not None:
        parts.append(resampler.resample_chunk(np.zeros(0, np.float32), last=True))
    samples = np.concatenate(parts)
    if not len(samples):
        raise Refusal("the sound is empty")
    return np.clip(samples, -1.0, 1.0)


def _blocks(file: SoundFile) -> Iterator[Samples]:
    """All of the file in one channel."""
    frames = max(1, BLOCK // file.channels)
    while len(block := file.read(frames, dtype="float32", always_2d=True)):
        mixed: Samples = block.mean(axis=1, dtype=np.float32)
        if not np.isfinite(mixed).all():
            raise Refusal("the sound has samples that are no numbers")
        yield mixed
