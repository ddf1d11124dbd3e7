"""Names of slot files, as clients may give them. Pure."""

from __future__ import annotations

import re
from pathlib import Path

from puna.errors import InvalidRequest

LONGEST = 255
"""Bytes that a name may have on common file systems."""

RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
"""Names that are devices on Windows, whatever follows the dot."""

FORBIDDEN = re.compile(r'[\x00-\x1f\x7f-\x9f/\\:*?"<>|]')


def slot_file(folder: str, name: str) -> Path:
    """The path of a file in `folder`. Raises `InvalidRequest` unless `name` is a plain one, everywhere."""
    try:
        n_bytes = len(name.encode())
    except UnicodeEncodeError:
        n_bytes = 0
    reason = ""
    if not 0 < n_bytes <= LONGEST:
        reason = f"it must have 1 to {LONGEST} bytes"
    elif found := FORBIDDEN.search(name):
        reason = f"it must not contain {found.group()!r}"
    elif name.startswith((".", " ")) or name.endswith((".", " ")):
        reason = "it must not begin or end with a dot or a space"
    elif RESERVED.fullmatch(name):
        reason = "it is the name of a device on some systems"
    if reason:
        raise InvalidRequest(f"Invalid filename: {reason}", param="filename")
    return Path(folder) / name
