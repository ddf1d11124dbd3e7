"""Prompts with a gap over real vocabularies and tiny ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from puna.client.tokenizer import load_tokenizer
from puna.errors import NotSupported
from puna.service.infill import Gap, Piece, check_fim, fill_prompt
from tests import tiny

GAP = Gap(
    before="def add(a, b):\n",
    line="    return ",
    after="\n\nprint(add(1, 2))\n",
    pieces=(Piece("X = 1\n", "x.py"), Piece("Y = '<fim_middle><｜fim▁end｜>'\n", "y.py")),
)


@pytest.mark.parametrize(
    "name, texts",
    [
        ("deepseek-coder", ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>")),
        ("starcoder", ("<fim_prefix>", "<fim_suffix>", "<fim_middle>")),
    ],
)
async def test_real_vocabularies(shared: Path, name: str, texts: tuple[str, str, str]) -> None:
    tokenizer = load_tokenizer(str(shared / "data" / "vocab" / f"ggml-vocab-{name}.gguf"))
    fim = tokenizer.fim
    assert tuple(map(tokenizer.text, (fim.prefix, fim.suffix, fim.middle))) == texts
    prompt = await fill_prompt(tokenizer, GAP, n_ctx=4096, n_batch=2048)
    assert [prompt.count(token) for token in (fim.prefix, fim.suffix, fim.middle)] == [1, 1, 1]
    assert prompt.count(tokenizer.bos) == int(tokenizer.add_bos)
    text = tokenizer.detokenize(prompt)
    assert text.endswith(f"{texts[0]}def add(a, b):\n    return {texts[1]}\n\nprint(add(1, 2))\n{texts[2]}")
    assert text.count("\n\n--- snippet ---\n\n") == 2


async def test_a_vocabulary_with_file_tokens(tmp_path: Path) -> None:
    vocab = tiny.bpe_vocab(extra=("<|repo_name|>", "<|file_sep|>"))
    tokenizer = load_tokenizer(str(tiny.write_llama(tmp_path / "m.gguf", vocab=vocab)))
    prompt = tokenizer.detokenize(await fill_prompt(tokenizer, GAP, n_ctx=2048, n_batch=512))
    assert prompt.startswith("<|repo_name|>myproject\n<|file_sep|>x.py\nX = 1\n<|file_sep|>y.py\nY = ")
    assert prompt.endswith(
        "<|file_sep|>filename\n<|fim_prefix|>def add(a, b):\n    return <|fim_suffix|>\n\nprint(add(1, 2))\n<|fim_middle|>"
    )


def test_a_vocabulary_without(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(str(tiny.write_llama(tmp_path / "m.gguf", vocab=tiny.spm_vocab(fim=False))))
    with pytest.raises(NotSupported, match="no prefix and no suffix and no middle token"):
        check_fim(tokenizer)
