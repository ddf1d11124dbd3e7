"""Moving pictures as a few still ones. What films are packed in needs decoders that are not here."""

from __future__ import annotations

from puna.mediafiles.pictures import MAX_PIXELS, open_picture, picture_media
from puna.mediafiles.refusal import Refusal
from puna.mediafiles.sniff import content_of
from puna.types import Media

MOST = 8
"""Frames that are taken, evenly spaced."""
MAX_FRAMES = 2_000
MAX_TOTAL = 8 * MAX_PIXELS
"""Most pixels of all frames: those in between have to be decoded too."""

_FILM = "films need ffmpeg, which is not used here; send pictures of them, or an animated GIF, WebP or PNG"


def decode_frames(data: bytes) -> tuple[Media, ...]:
    """Frames of an animated GIF, WebP or PNG, the first one first. Raises `Refusal`."""
    if content_of(data) == "video":
        raise Refusal(_FILM, unsupported=True)
    image = open_picture(data)
    try:
        n = int(getattr(image, "n_frames", 1))
        if n > MAX_FRAMES or n * image.width * image.height > MAX_TOTAL:
            raise Refusal(f"there are too many frames: {n} of {image.width} x {image.height}")
        frames = []
        for index in sorted({round(step * (n - 1) / max(1, MOST - 1)) for step in range(MOST)}):
            image.seek(index)
            frames.append(picture_media(image.copy()))
    except Refusal:
        raise
    except Exception as error:  # decoders of damaged files fail in many ways
        raise Refusal(f"the picture is damaged: {(str(error).strip() or type(error).__name__).splitlines()[0][:120]}") from error
    return tuple(frames)
