"""A model file may hold several chat templates."""

from __future__ import annotations

from pathlib import Path

from puna.llama.model import Model
from tests import tiny


def test_each_is_found_by_its_name(tmp_path: Path) -> None:
    long = "{# " + "x" * 9000 + " #}{{ tools }}"
    templates = [{"name": name, "template": text} for name, text in [("default", "own"), ("tool_use", long), ("rag", "r")]]
    model = Model(str(tiny.write_llama(tmp_path / "m.gguf", chat_template=templates)), vocab_only=True)
    assert model.chat_template == "own"
    assert model.chat_template_variants == {"tool_use": long, "rag": "r"}


def test_there_may_be_none(tiny_llama: Path) -> None:
    assert Model(str(tiny_llama), vocab_only=True).chat_template_variants == {}
