"""`puna pull`."""

from __future__ import annotations

import os
from collections.abc import Sequence

from puna.errors import StartupError
from puna.gguf import read_header

USAGE = """usage: puna pull USER/REPO[:QUANT] [--offline]

Fetches a model's GGUF file from huggingface.co into the cache that all programs share (HF_HOME), and prints its path.
A download that was cut goes on where it ended; files are held against their checksums. HF_TOKEN opens private
repositories, HF_ENDPOINT names another server.

  puna pull bartowski/Llama-3.2-1B-Instruct-GGUF:Q4_K_M
  puna serve -hf bartowski/Llama-3.2-1B-Instruct-GGUF:Q4_K_M
"""


def run(arguments: Sequence[str]) -> int:
    """Fetch one model."""
    if any(word in {"-h", "--help"} for word in arguments):
        print(USAGE)
        return 0
    offline = "--offline" in arguments
    words = [word for word in arguments if word != "--offline"]
    if len(words) != 1 or words[0].startswith("-"):
        raise StartupError("one model is expected: puna pull USER/REPO[:QUANT]")
    from puna.models.downloads import fetch

    path = fetch(words[0], offline=offline, token=os.environ.get("HF_TOKEN") or None)
    read_header(path)
    print(path)
    return 0
