"""Texts of any length and kind are tokenised, as a whole would be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from puna.client.tokenizer import load_tokenizer
from puna.llama.pieces import PIECE, pieces

TEXT = "".join(
    f"Line {number}: don't <|im_start|> stop\u2026 caf\u00e9 \u6f22\u5b57\n\n    return x[{number}] != '</s>'  # so <s> be it\n"
    for number in range(150)
)


@pytest.mark.parametrize("parse_special", [False, True])
@pytest.mark.parametrize("name", ["tiny", "tiny-bpe", "deepseek-coder", "llama-spm"])
def test_pieces_have_the_tokens_of_the_whole(request: pytest.FixtureRequest, name: str, parse_special: bool) -> None:
    if name.startswith("tiny"):
        path: Path = request.getfixturevalue("tiny_llama" if name == "tiny" else "tiny_llama_bpe")
    else:
        path = request.getfixturevalue("shared") / "data" / "vocab" / f"ggml-vocab-{name}.gguf"
    tokenizer = load_tokenizer(str(path))
    assert len(pieces(TEXT, tokenizer.special_texts(), anywhere=True)) > len(TEXT) // PIECE
    whole = tokenizer._tokenize(TEXT, add_special=True, parse_special=parse_special)
    assert tokenizer.tokenize(TEXT, add_special=True, parse_special=parse_special) == whole


def test_one_endless_word_does_not_end_the_process(shared: Path) -> None:
    """In a process of its own, which would end by a signal."""
    path = shared / "data" / "vocab" / "ggml-vocab-deepseek-coder.gguf"
    code = (
        "import sys; from puna.client.tokenizer import load_tokenizer\n"
        "tokenizer = load_tokenizer(sys.argv[1])\n"
        "for text in 'a!\u6f22':\n"
        "    assert tokenizer.tokenize(text * 100_000, add_special=False, parse_special=True)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)], timeout=100, check=False).returncode == 0
