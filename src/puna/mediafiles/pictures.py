"""Pictures made into pixels, within bounds that are checked before anything is decoded."""

from __future__ import annotations

import io
import struct
import warnings
from functools import cache
from typing import TYPE_CHECKING

from puna.mediafiles.digest import media
from puna.mediafiles.refusal import Refusal
from puna.mediafiles.sniff import content_of
from puna.types import Media

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_PIXELS = 1 << 26
"""Most pixels of a file: decoding costs a few bytes of memory and some nanoseconds for each."""
KEPT_PIXELS = 1 << 23
"""Most pixels of what is given to a model; more are made fewer. No projector looks at half as many."""
MAX_SIDE = 32_768
MAX_RATIO = 200
"""How many times as long as the other the longer side may be."""

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "PPM")
READABLE = "JPEG, PNG, WebP, GIF, BMP and PPM"

_ORIENTATION = 0x0112
_TURNS = {
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}
"""What puts a picture upright, by how a camera says that it was held."""


def decode_picture(data: bytes) -> Media:
    """The picture, upright, on white where it is transparent; of a moving one the first frame. Raises `Refusal`."""
    image = open_picture(data)
    try:
        return picture_media(image)
    except Refusal:
        raise
    except Exception as error:  # decoders of damaged files fail in many ways
        raise Refusal(f"the picture is damaged: {_first_line(error)}") from error


def open_picture(data: bytes) -> Image:
    """The picture with its size checked, not decoded yet. Raises `Refusal`."""
    from PIL import Image, UnidentifiedImageError

    if not data:
        raise Refusal("the picture is empty")
    if content_of(data) != "image":
        raise Refusal(f"this is no picture of a kind that can be read, which are {READABLE}")
    _check_size(*_webp_size(data))
    _limit()
    try:
        image: Image.Image = Image.open(io.BytesIO(data), formats=FORMATS)
    except UnidentifiedImageError as error:
        raise Refusal("the picture is damaged: its beginning cannot be read") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise Refusal(f"the picture is too large; up to {MAX_PIXELS >> 20} million pixels can be read") from error
    except Exception as error:  # likewise for their headers
        raise Refusal(f"the picture is damaged: {_first_line(error)}") from error
    _check_size(*image.size)
    return image


def picture_media(image: Image) -> Media:
    """What is shown of an open picture now. Raises `Refusal`, or whatever the decoder raises."""
    from PIL.Image import Resampling, Transpose

    turn = _TURNS.get(_orientation(image))
    shrunk = _shrunk(*image.size)
    if shrunk != image.size:
        image.draft("RGB", shrunk)  # JPEG can be decoded at a fraction of its size
    image.load()
    upright = _flat(image)
    if upright.size != shrunk:
        upright = upright.resize(shrunk, resample=Resampling.BOX)
    if turn is not None:
        upright = upright.transpose(Transpose[turn])
    return media("image", upright.tobytes(), *upright.size)


@cache
def _limit() -> None:
    """Let the decoders themselves refuse frames that are larger than the first one. Sizes are checked here before that, so
    nobody needs their warnings."""
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = MAX_PIXELS
    warnings.simplefilter("ignore", Image.DecompressionBombWarning)


def _check_size(width: int, height: int) -> None:
    if width <= 0 or height <= 0:
        raise Refusal(f"the picture has no pixels ({width} x {height})")
    if width * height > MAX_PIXELS or max(width, height) > MAX_SIDE:
        raise Refusal(f"the picture is too large: {width} x {height}; up to {MAX_PIXELS >> 20} million pixels can be read")
    if max(width, height) > MAX_RATIO * min(width, height):
        raise Refusal(f"the picture is too narrow: {width} x {height}; no side may be over {MAX_RATIO} times the other")


def _shrunk(width: int, height: int) -> tuple[int, int]:
    if width * height <= KEPT_PIXELS:
        return width, height
    factor = (KEPT_PIXELS / (width * height)) ** 0.5
    return max(1, int(width * factor)), max(1, int(height * factor))


def _webp_size(data: bytes) -> tuple[int, int]:
    """Of a WebP file the size of its canvas, which opening it would make room for; of any other file (1, 1)."""
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP" or len(data) < 30:
        return 1, 1
    kind = data[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = struct.unpack_from("<HH", data, 26)
    return max(1, width & 0x3FFF), max(1, height & 0x3FFF)


def _orientation(image: Image) -> int:
    try:
        return int(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # noqa: BLE001 - damaged notes about a picture leave the picture as it is
        return 1


def _flat(image: Image) -> Image:
    """The same in three colours of 8 bits."""
    from PIL import Image

    if image.mode.startswith("I"):  # a larger grey, which would be cut off, not scaled
        import numpy as np

        grey = np.asarray(image)
        image = Image.fromarray((grey.clip(0, 65535) // 256).astype(np.uint8))
    if "A" in image.mode or "a" in image.mode or "transparency" in image.info:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, (255, 255, 255, 255))
        return Image.alpha_composite(white, image).convert("RGB")
    return image.convert("RGB")


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:120]
