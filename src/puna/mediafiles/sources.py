"""Where a picture or a sound is, as requests write it: in the text itself, in a file, on a web server. Pure."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from urllib.parse import unquote

from puna.mediafiles.refusal import Refusal

MAX_HEAD = 1_024
"""Most characters of a data: URI before what it holds."""

_TYPES = ("image/", "audio/", "video/", "application/")
_BLANKS = str.maketrans("", "", " \t\r\n")
_URL_SAFE = str.maketrans("-_", "+/")


@dataclass(frozen=True)
class Inline:
    """Base64 text."""

    text: str

    def decode(self) -> bytes:
        """The bytes. Raises `Refusal`."""
        text = self.text  # may have many millions of characters: nothing is done to it that need not be
        if any(blank in text for blank in " \t\r\n"):
            text = text.translate(_BLANKS)
        if "-" in text or "_" in text:
            text = text.translate(_URL_SAFE)
        text = text.rstrip("=")
        try:
            return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
        except (binascii.Error, ValueError) as error:
            raise Refusal(f"this is not valid base64: {error}") from error


@dataclass(frozen=True)
class LocalFile:
    """A file of the machine that the server runs on."""

    path: str


@dataclass(frozen=True)
class Remote:
    """A file on a web server."""

    url: str


Source = Inline | LocalFile | Remote


def parse_source(text: str) -> Source:
    """A data URI, an address, or plain base64. Raises `Refusal`."""
    head = text[:16].lstrip().lower()
    if head.startswith("data:"):
        return _data(text.lstrip())
    if head.startswith("file:"):
        return LocalFile(_path(text.strip()))
    if head.startswith(("http://", "https://")):
        return Remote(text.strip())
    if ":" in text[:64]:
        raise Refusal("a data: URI, base64, or an address that begins with http:, https: or file: is expected")
    if not text.strip():
        raise Refusal("there is nothing in it")
    return Inline(text)


def _data(text: str) -> Inline:
    comma = text.find(",", 0, MAX_HEAD)
    if comma < 0:
        raise Refusal("the data: URI is not complete; it should look like data:image/png;base64,...")
    kind, *options = text[len("data:") : comma].lower().split(";")
    kind = kind.strip()
    if "base64" not in [option.strip() for option in options]:
        raise Refusal("a data: URI has to be in base64")
    if kind and not kind.startswith(_TYPES):
        raise Refusal(f"a data: URI of type {kind[:60]!r} is no picture and no sound")
    return Inline(text[comma + 1 :])


def _path(text: str) -> str:
    """The path of an address like `file:///a/b`, `file://localhost/a/b`, `file:/a/b`, or, below the folder, `file://a/b`."""
    path = text[len("file:") :]
    if path.startswith("//"):
        path = path[2:].removeprefix("localhost/") if not path.startswith("//localhost/") else path[len("//localhost") :]
    return unquote(path)
