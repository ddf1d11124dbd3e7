"""What bytes are, by how they begin: names and types that come with them are often wrong."""

from __future__ import annotations

from typing import Literal

Content = Literal["image", "audio", "video", "unknown"]

_IMAGES = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF87a", b"GIF89a", b"BM", b"P5", b"P6", b"P4", b"P1", b"P2", b"P3")
_SOUNDS = (b"fLaC", b"OggS", b"ID3", b"RF64")
_RIFF: dict[bytes, Content] = {b"WAVE": "audio", b"WEBP": "image", b"AVI ": "video"}
_VIDEOS = (b"\x1a\x45\xdf\xa3", b"FLV\x01", b"\x00\x00\x01\xba", b"\x00\x00\x01\xb3")

EARLIEST = 16
"""Bytes that are enough to tell."""


def content_of(data: bytes) -> Content:
    """Kind of a file's content. A container that holds sound or moving pictures, such as MP4, counts as video."""
    head = data[:EARLIEST]
    if head[:4] == b"RIFF":
        return _RIFF.get(head[8:12], "unknown")
    if head[:4] == b"FORM" and head[8:12] in (b"AIFF", b"AIFC"):
        return "audio"
    if head.startswith(_IMAGES):
        return "image"
    if head.startswith(_SOUNDS) or _is_mpeg_audio(head):
        return "audio"
    if head.startswith(_VIDEOS) or head[4:8] == b"ftyp":
        return "video"
    return "unknown"


def _is_mpeg_audio(head: bytes) -> bool:
    """Whether it begins with a frame of MPEG audio: eleven bits set, then a version, layer, rate that are not reserved."""
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return False
    version, layer = head[1] >> 3 & 3, head[1] >> 1 & 3
    return version != 1 and layer != 0 and head[2] >> 4 != 15 and head[2] >> 2 & 3 != 3
