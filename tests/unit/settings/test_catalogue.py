"""Files of models with flags of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from puna.errors import StartupError
from puna.settings import ModelTable, load, read_catalogue, variant

TOML = """
version = 1
["*"]
ctx-size = 1024

[chat]
model = "chat.gguf"
alias = ["gpt-4", "default"]
parallel = 2
load-on-startup = true

[vectors]
model = "/abs/vectors.gguf"
embeddings = true
ctx_size = 256
"""
INI = """version = 1
[*]
c = 1024
[chat]
model = chat.gguf
alias = gpt-4, default
np = 2
load-on-startup = 1
[vectors]
model = /abs/vectors.gguf
LLAMA_ARG_EMBEDDINGS = on
LLAMA_ARG_CTX_SIZE = 256
"""


def tables(folder: Path, text: str, name: str = "models.toml", flags: str = "") -> list[ModelTable]:
    path = folder / name
    path.write_text(text)
    return read_catalogue(str(path), load(flags.split(), {}))


def message(folder: Path, text: str, name: str = "models.toml") -> str:
    with pytest.raises(StartupError) as caught:
        tables(folder, text, name)
    return str(caught.value)


def test_the_folder_for_slots_is_for_all(tmp_path: Path) -> None:
    loaded = load(["-m", "first.gguf", "--slot-save-path", str(tmp_path)], {})
    assert variant(loaded, ()).server.slot_save_path == str(tmp_path)


@pytest.mark.parametrize("name, text", [("models.toml", TOML), ("models.ini", INI)])
def test_both_forms_say_the_same(tmp_path: Path, name: str, text: str) -> None:
    chat, vectors = tables(tmp_path, text, name, "-m first.gguf --alias one -c 77 -t 3 --api-key k --lora x")
    assert (chat.name, chat.aliases, chat.on_start) == ("chat", ("gpt-4", "default"), True)
    assert chat.settings.engine.model == str(tmp_path / "chat.gguf") and chat.settings.server.alias == "chat"
    assert (chat.settings.engine.n_ctx, chat.settings.engine.n_slots, chat.settings.engine.n_threads) == (1024, 2, 3)
    assert chat.settings.engine.lora == () and not chat.settings.engine.embeddings
    assert (vectors.name, vectors.aliases, vectors.on_start) == ("vectors", (), False)
    assert vectors.settings.engine.model == "/abs/vectors.gguf"
    assert vectors.settings.engine.embeddings and vectors.settings.engine.n_ctx == 256
    assert vectors.settings.server.api_keys == ("k",)


def test_what_is_wrong_is_said_with_its_place(tmp_path: Path) -> None:
    assert "line 5 (parallell): there is no such option; did you mean parallel?" in message(
        tmp_path, '[a]\nmodel = "x"\n[b]\nmodel = "y"\nparallell = 3\n'
    )
    assert "line 4 (ctx-size): 'many' is not a whole number" in message(
        tmp_path, '[a]\nmodel = "x"\nparallel = 1\nctx-size = "many"\n'
    )
    assert message(tmp_path, "[a]\nparallel = 1\n").endswith("[a]: there is no `model`, the path of a GGUF file")
    assert "there is no model in it" in message(tmp_path, "")
    assert "not valid TOML" in message(tmp_path, "[a\n")
    assert "not a valid INI file" in message(tmp_path, "[a]\nx\n", "m.ini")
    assert "stands outside of any model's table" in message(tmp_path, 'model = "x"\n')
    assert "`alias` is a text or a list of texts" in message(tmp_path, '[a]\nmodel = "x"\nalias = 3\n')
    assert "`load-on-startup`" in message(tmp_path, '[a]\nmodel = "x"\nload-on-startup = "perhaps"\n')
    with pytest.raises(StartupError, match="cannot read"):
        read_catalogue(str(tmp_path / "none.toml"), load([], {}))
