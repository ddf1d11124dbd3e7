"""The server's own vocabulary of a model goes when nobody uses it any more."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from puna.client.tokenizer import load_tokenizer
from puna.llama.model import Model


def test_the_engines_memory_is_given_back(tiny_llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Model] = []
    close = Model.close

    def noted(self: Model) -> None:
        close(self)
        closed.append(self)

    monkeypatch.setattr(Model, "close", noted)
    tokenizer = load_tokenizer(str(tiny_llama))
    gc.collect()
    assert tokenizer.tokenize("a", add_special=False, parse_special=False) and closed == []
    del tokenizer
    gc.collect()
    assert len(closed) == 1
