"""`puna version`."""

from __future__ import annotations

import platform
from collections.abc import Sequence

from puna import __version__


def run(arguments: Sequence[str]) -> int:
    """Print the version of puna and of Python."""
    print(f"puna {__version__} (Python {platform.python_version()}, {platform.system()} {platform.machine()})")
    return 0
