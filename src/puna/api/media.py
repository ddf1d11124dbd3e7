"""Parts of a message's content that are pictures or sounds, in every form in which clients send them."""

from __future__ import annotations

from typing import Any, Literal, NoReturn

from puna.errors import InvalidRequest
from puna.service.chat import MediaPart

_KINDS: dict[str, tuple[Literal["image", "audio", "video", "any"], str, tuple[str, ...]]] = {
    "image_url": ("image", "image_url", ("url",)),
    "input_image": ("image", "image_url", ("url",)),
    "audio_url": ("audio", "audio_url", ("url",)),
    "input_audio": ("audio", "input_audio", ("data", "url")),
    "video_url": ("video", "video_url", ("url", "data")),
    "input_video": ("video", "input_video", ("data", "url")),
    "file": ("any", "file", ("file_data",)),
    "input_file": ("any", "file_data", ()),
}
"""Type of a part to what it is, the field that holds it, and the fields in there that may be its source."""


def is_media(kind: object) -> bool:
    """Whether parts of this type are pictures or sounds."""
    return isinstance(kind, str) and kind in _KINDS


def decode_media(part: dict[str, Any], at: str) -> MediaPart:
    """A part of such a type. Raises `InvalidRequest` that names the field."""
    kind, name, inner = _KINDS[part["type"]]
    if kind == "any" and part.get(name) is None and part.get("file_url") is not None:
        name = "file_url"
    holder = part.get(name)
    if holder is None and (part.get("file_id") is not None or (isinstance(part.get("file"), dict) and "file_id" in part["file"])):
        _refuse(f"{at}.file_id", "files are not kept here; send the file itself")
    field = f"{at}.{name}"
    source: Any = holder
    if isinstance(holder, dict):
        if "file_id" in holder and not any(holder.get(one) for one in inner):
            _refuse(f"{field}.file_id", "files are not kept here; send the file itself")
        source = next((holder[one] for one in inner if holder.get(one) is not None), None)
    if not isinstance(source, str):
        _refuse(field, "has nothing in it")
    return MediaPart(kind, source, at, field)


def _refuse(field: str, reason: str) -> NoReturn:
    raise InvalidRequest(f"Field '{field}': {reason}", param=field)
