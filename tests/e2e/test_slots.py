"""Slots as users of llama.cpp's server know them, across restarts, and with hostile file names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.e2e.conftest import ServerMaker
from tests.e2e.server import Server

PROMPT = "The capital of France is a city on the Seine, and it has been that for a very long time. What is it?"
OTHER = "The capital of France is a city on the Seine, and it has been that for a very long time. Who was born there?"


def ask(server: Server, prompt: str, **more: Any) -> Any:
    return server.json("/completion", {"prompt": prompt, "n_predict": 4, "temperature": 0, **more})


def act(server: Server, slot: int, action: str, name: str | None = None) -> Any:
    return server.json(f"/slots/{slot}?action={action}", {} if name is None else {"filename": name})


def test_save_restart_restore_erase(tiny_llama: Path, tmp_path: Path, make_server: ServerMaker) -> None:
    folder = tmp_path / "slots"
    folder.mkdir()
    flags = ("-c", "512", "-np", "4", "-t", "1", "--slot-save-path", str(folder))
    server = make_server(tiny_llama, *flags)
    first = ask(server, PROMPT, id_slot=1)
    assert (first["id_slot"], first["timings"]["cache_n"]) == (1, 0)
    saved = act(server, 1, "save", "one.bin")
    assert saved["n_saved"] >= first["timings"]["prompt_n"] and saved["n_written"] == (folder / "one.bin").stat().st_size
    assert saved["timings"]["save_ms"] > 0
    server.stop()

    server = make_server(tiny_llama, *flags)
    restored = act(server, 2, "restore", "one.bin")
    assert (restored["n_restored"], restored["n_read"]) == (saved["n_saved"], saved["n_written"])
    again = ask(server, OTHER)
    assert again["id_slot"] == 2, "the slot that held most of the prompt"
    assert again["timings"]["cache_n"] > 40
    new = ask(server, "Something else entirely", id_slot=3)
    assert act(server, 3, "erase") == {"id_slot": 3, "n_erased": new["timings"]["cache_n"] + new["timings"]["prompt_n"] + 3}
    assert ask(server, "Something else entirely", id_slot=3)["timings"]["cache_n"] == new["timings"]["cache_n"]

    shown = server.slots()[2]
    assert shown["n_prompt_tokens"] == again["timings"]["cache_n"] + again["timings"]["prompt_n"]
    assert shown["next_token"][0]["n_decoded"] == 4 and shown["params"]["n_predict"] == 4
    assert PROMPT not in str(shown)

    outside = tmp_path / "outside"
    outside.write_text("mine")
    (folder / "link").symlink_to(outside)
    (folder / "text").write_text("hello")
    whole = (folder / "one.bin").read_bytes()
    (folder / "cut").write_bytes(whole[: len(whole) // 2])
    for name in ("../outside", str(outside), "a/b", "a\0b", "..\\x", "CON", "", "x" * 300, "link", "."):
        for action in ("save", "restore"):
            reply = server.post(f"/slots/2?action={action}", {"filename": name})
            assert (reply.status_code, reply.json()["error"]["type"]) == (400, "invalid_request_error"), (action, name)
    for name in ("text", "cut", "nothing"):
        reply = server.post("/slots/2?action=restore", {"filename": name})
        assert reply.status_code == 400 and name in reply.json()["error"]["message"]
    assert outside.read_text() == "mine" and (folder / "one.bin").read_bytes() == whole
    assert sorted(file.name for file in folder.iterdir()) == ["cut", "link", "one.bin", "text"]
    server.assert_alive()
    server.stop()
