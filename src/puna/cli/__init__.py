"""The command line: `puna serve`, `puna bench`, `puna doctor`, `puna version`. One file a command."""

from puna.cli.main import main

__all__ = ["main"]
