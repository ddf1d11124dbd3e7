"""Pictures: what can be read, what is refused before it costs anything."""

from __future__ import annotations

import hashlib
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from puna.mediafiles import pictures
from puna.mediafiles.frames import decode_frames
from puna.mediafiles.pictures import decode_picture
from puna.mediafiles.refusal import Refusal
from tests.unit.mediafiles.samples import COLOURS, moving, pixels, quarters, saved

CORNERS = ((0, 0), (15, 0), (0, 15), (15, 15))


@pytest.mark.parametrize("form", ["PNG", "BMP", "GIF", "WEBP", "PPM", "JPEG"])
def test_formats(form: str) -> None:
    lossless = {"lossless": True} if form == "WEBP" else {"quality": 100, "subsampling": 0} if form == "JPEG" else {}
    found = decode_picture(saved(quarters(), form, **lossless))
    assert (found.kind, found.width, found.height, len(found.data)) == ("image", 16, 16, 3 * 256)
    near = np.abs(np.array(pixels(found.data, 16, *CORNERS)) - np.array(COLOURS)).max()
    assert near <= (3 if form == "JPEG" else 0)


def test_the_digest_is_over_kind_size_and_data() -> None:
    found = decode_picture(saved(quarters()))
    assert found.digest == hashlib.sha256(b"image 16 16 " + found.data).hexdigest()
    wide, high = (decode_picture(saved(Image.new("RGB", size))) for size in ((8, 2), (2, 8)))
    assert wide.data == high.data and wide.digest != high.digest


@pytest.mark.parametrize("orientation", range(1, 9))
def test_pictures_are_turned_upright(orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    inverse = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}  # of what puts them upright; Transpose's own numbers
    held = quarters() if orientation == 1 else quarters().transpose(Image.Transpose(inverse[orientation]))
    found = decode_picture(saved(held, "PNG", exif=exif))
    assert pixels(found.data, 16, *CORNERS) == list(COLOURS)


def test_what_is_transparent_is_white() -> None:
    image = Image.new("RGBA", (2, 1), (0, 0, 0, 0))
    image.putpixel((1, 0), (255, 0, 0, 255))
    assert pixels(decode_picture(saved(image)).data, 2, (0, 0), (1, 0)) == [(255, 255, 255), (255, 0, 0)]
    palette = Image.new("P", (1, 1), 0)
    palette.putpalette([10, 20, 30])
    assert pixels(decode_picture(saved(palette, "PNG", transparency=0)).data, 1, (0, 0)) == [(255, 255, 255)]


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "CMYK"])
def test_other_colours(mode: str) -> None:
    image = Image.new("RGB", (4, 4), (255, 255, 255)).convert(mode)
    found = decode_picture(saved(image, "JPEG" if mode == "CMYK" else "PNG"))
    assert min(found.data) >= 253


def test_sixteen_bits_of_grey_are_scaled() -> None:
    image = Image.fromarray(np.array([[0, 0x8000, 0xFFFF]], np.uint16))
    assert pixels(decode_picture(saved(image)).data, 3, (0, 0), (1, 0), (2, 0)) == [(0,) * 3, (128,) * 3, (255,) * 3]


@pytest.mark.parametrize("form", ["GIF", "WEBP", "PNG"])
def test_of_moving_pictures_the_first_frame(form: str) -> None:
    found = decode_picture(moving(form))
    assert (found.width, found.height) == (6, 4)
    assert np.abs(np.array(pixels(found.data, 6, (2, 2))) - np.array(COLOURS[0])).max() < 40


@pytest.mark.parametrize("form", ["GIF", "WEBP", "PNG"])
def test_frames_of_moving_pictures(form: str) -> None:
    found = decode_frames(moving(form))
    assert len(found) == 4 and len({frame.digest for frame in found}) == 4
    for frame, colour in zip(found, COLOURS, strict=True):
        assert np.abs(np.array(pixels(frame.data, 6, (2, 2))) - np.array(colour)).max() < 40


def test_frames_are_taken_evenly() -> None:
    frames = [Image.new("L", (2, 2), index) for index in range(50)]
    found = decode_frames(saved(frames[0], "GIF", save_all=True, append_images=frames[1:]))
    shades = [frame.data[0] for frame in found]
    assert shades == [0, 7, 14, 21, 28, 35, 42, 49]
    assert len(decode_frames(saved(frames[0]))) == 1


def test_large_pictures_are_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "KEPT_PIXELS", 100)
    for form in ("PNG", "JPEG"):
        found = decode_picture(saved(quarters(20), form))
        assert (found.width, found.height) == (10, 10) and len(found.data) == 300
        assert np.abs(np.array(pixels(found.data, 10, (0, 0), (9, 9))) - np.array([COLOURS[0], COLOURS[3]])).max() < 12
    narrow = decode_picture(saved(Image.new("RGB", (300, 2))))
    assert (narrow.width, narrow.height) == (122, 1)


def png(width: int, height: int) -> bytes:
    """A file that says it is so large, and has nothing more."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + head
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk)) + b"\0\0\0\0IDAT"


def webp(width: int, height: int) -> bytes:
    head = (
        b"VP8X" + struct.pack("<I", 10) + b"\x02\0\0\0" + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    )
    return b"RIFF" + struct.pack("<I", 4 + len(head)) + b"WEBP" + head


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"hello, this is text and no picture", "no picture of a kind that can be read"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "no picture"),
        (b"%PDF-1.7", "no picture"),
        (png(100_000, 100_000), "too large"),
        (png(2**31 - 1, 1), "too large"),
        (png(10_000, 10_000), "too large"),
        (png(30_000, 3), "too narrow"),
        (png(0, 5), "picture"),
        (webp(16_000, 16_000), "too large"),
        (saved(quarters())[:-40], "damaged"),
        (saved(quarters(200), "JPEG")[:500], "damaged"),
        (saved(quarters(), "WEBP")[:40], "picture"),
        (saved(quarters(), "GIF")[:30], "damaged"),
    ],
)
def test_what_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(Refusal, match=words) as caught:
        decode_picture(data)
    assert len(caught.value.reason) < 250


def test_every_cut_of_a_file_is_refused_or_read() -> None:
    for form in ("PNG", "JPEG", "GIF", "WEBP", "BMP"):
        whole = saved(quarters(4), form)
        for end in range(0, len(whole), 7):
            try:
                found = decode_picture(whole[:end])
            except Refusal:
                continue
            assert len(found.data) == 3 * found.width * found.height


def test_films_are_not_supported() -> None:
    for head in (b"\0\0\0\x20ftypisom" + bytes(20), b"\x1a\x45\xdf\xa3" + bytes(20)):
        with pytest.raises(Refusal, match="ffmpeg") as caught:
            decode_frames(head)
        assert caught.value.unsupported
