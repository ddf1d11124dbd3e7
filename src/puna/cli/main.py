"""Which command is meant, and how errors meant for people leave the process."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

from puna.errors import StartupError

COMMANDS = {
    "serve": "serve a model over HTTP",
    "pull": "fetch a model from huggingface.co",
    "models": "list the models that are there",
    "bench": "measure servers side by side",
    "doctor": "look at engine, machine and model, and say what is wrong",
    "version": "print puna's version",
}
USAGE = "usage: puna COMMAND [FLAGS]\n\n" + "\n".join(f"  {name:<9} {text}" for name, text in COMMANDS.items())
ENDING = "\n\n`puna COMMAND --help` tells more. Flags without a command mean `puna serve`."

BAD_USAGE = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code: 0 well, 1 something is wrong, 2 wrongly called or set up."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in {"-h", "--help", "help"}:
        print(USAGE + ENDING)
        return 0 if words else BAD_USAGE
    if words[0] in {"--version", "-V"}:
        words = ["version"]
    command = "serve" if words[0].startswith("-") else words.pop(0)
    if command not in COMMANDS:
        print(f"puna: there is no command {command!r}\n\n{USAGE}", file=sys.stderr)
        return BAD_USAGE
    try:
        # each command imports what it needs, so that `puna doctor` runs where the server cannot
        code: int = importlib.import_module(f"puna.cli.{command}").run(words)
        sys.stdout.flush()
    except StartupError as error:
        print(f"puna: {error}", file=sys.stderr)
        return BAD_USAGE
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever read the output has seen enough, `puna serve --help | head` for one
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the interpreter flushes once more when it ends
        return 141
    return code
