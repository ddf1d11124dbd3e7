"""Small pictures and sounds as files."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import soundfile
from PIL import Image

COLOURS = ((255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0))


def quarters(side: int = 8) -> Image.Image:
    """Red, green in the upper half, blue, yellow in the lower one."""
    image = Image.new("RGB", (2 * side, 2 * side))
    for index, colour in enumerate(COLOURS):
        image.paste(colour, (index % 2 * side, index // 2 * side, (index % 2 + 1) * side, (index // 2 + 1) * side))
    return image


def saved(image: Image.Image, form: str = "PNG", **options: Any) -> bytes:
    """The image as a file."""
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def moving(form: str = "GIF", n: int = 4) -> bytes:
    """Frames of one colour each."""
    frames = [Image.new("RGB", (6, 4), COLOURS[index % 4]) for index in range(n)]
    return saved(frames[0], form, save_all=True, append_images=frames[1:], duration=100)


def tone(seconds: float = 0.5, rate: int = 16_000, *, channels: int = 1, form: str = "WAV", subtype: str | None = None) -> bytes:
    """A sine of 440 Hz as a file; every further channel is silent."""
    samples = np.zeros((int(seconds * rate), channels), np.float32)
    samples[:, 0] = 0.5 * np.sin(2 * np.pi * 440 * np.arange(len(samples)) / rate)
    return sound(samples, rate, form=form, subtype=subtype)


def sound(samples: Any, rate: int = 16_000, *, form: str = "WAV", subtype: str | None = None) -> bytes:
    """The samples as a file."""
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=form, subtype=subtype)
    return file.getvalue()


def uri(data: bytes, kind: str = "image/png") -> str:
    """The file as a data: URI."""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def pixels(data: bytes, width: int, *places: Sequence[int]) -> list[tuple[int, ...]]:
    """RGB at (x, y)."""
    return [tuple(data[3 * (y * width + x) :][:3]) for x, y in places]
