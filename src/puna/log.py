"""One logger, one line format: `HH:MM:SS level text` on standard error."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import TextIO

logger = logging.getLogger("puna")
"""Everything puna says goes through here."""

COLOURS = {"debug": "\x1b[2m", "warning": "\x1b[33m", "error": "\x1b[31m", "critical": "\x1b[31;1m"}
RESET = "\x1b[0m"


class LineFormatter(logging.Formatter):
    """Formats records, with the level in colour when asked and with secrets masked."""

    def __init__(self, *, colour: bool, secrets: Sequence[str] = ()) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s", datefmt="%H:%M:%S")
        self._colour = colour
        # A key that contains another one must be masked first, or its rest would be left readable.
        self._secrets = sorted((secret for secret in secrets if secret), key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        """Return the finished text of a record, its traceback included."""
        record = logging.makeLogRecord(record.__dict__)
        level = record.levelname.lower()
        record.levelname = f"{COLOURS[level]}{level}{RESET}" if self._colour and level in COLOURS else level
        text = super().format(record)
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


def configure(
    level: str = "info", *, colour: bool | None = None, secrets: Sequence[str] = (), stream: TextIO | None = None
) -> None:
    """Send puna's log to `stream` (standard error by default); a second call replaces the first.

    `level` is `debug`, `info`, `warning` or `error`. `colour` None means: when the stream is a terminal. `secrets` are
    texts, such as API keys, that never appear in any line.
    """
    target = sys.stderr if stream is None else stream
    handler = logging.StreamHandler(target)
    handler.setFormatter(LineFormatter(colour=target.isatty() if colour is None else colour, secrets=secrets))
    logger.handlers[:] = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False
