"""Slots saved, restored and erased with a real engine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from puna.config import ScaledFile
from puna.ipc.frames import SlotDone, SlotJob
from puna.media import MEDIA
from puna.types import SlotAction
from tests.engine.driver import Driver
from tests.engine.media import picture, write_pair
from tests.tiny import write_lora
from tests.tiny.projector import Vision

PROMPT = tuple(5 + i % 200 for i in range(150))
QUESTION = (*PROMPT[:120], 7, 8, 9)


class Slots(Driver):
    """A driver that acts on slots too."""

    def __init__(self, model: Path, folder: Path, **settings: object) -> None:
        super().__init__(model, **settings)
        self.folder = folder
        self.done: dict[int, SlotDone] = {}
        self.n_jobs = 0

    def ask_for(self, action: SlotAction, slot: int, name: str = "") -> int:
        self.n_jobs += 1
        self.engine.slot_jobs.add(SlotJob(self.n_jobs, action, slot, str(self.folder / name)))
        return self.n_jobs

    def step(self) -> None:
        super().step()
        self.done.update({done.id: done for done in self.engine.slot_jobs.take_done()})

    def act(self, action: SlotAction, slot: int, name: str = "") -> SlotDone:
        id = self.ask_for(action, slot, name)
        self.run(until=lambda: id in self.done)
        return self.done[id]

    def must(self, action: SlotAction, slot: int, name: str = "") -> int:
        """Do it, and return how many tokens it was."""
        done = self.act(action, slot, name)
        assert done.error == ""
        return done.outcome.n_tokens


@pytest.mark.parametrize("more", [{}, {"cache_ram": 0}, {"layout": "unified"}], ids=["split", "without host memory", "unified"])
def test_a_restored_prompt_is_not_read_again(tiny_llama: Path, tmp_path: Path, more: dict[str, object]) -> None:
    first = Slots(tiny_llama, tmp_path, **more)
    assert first.ask(PROMPT, force="abc", id_slot=1).slots == {1}
    n = first.must("save", 1, "one")
    assert n == 150, "forced tokens are not read, for the answer ends with them"
    again = Slots(tiny_llama, tmp_path, **more)
    assert again.must("restore", 3, "one") == n
    answer = again.ask(QUESTION, force="fine")
    assert (answer.cached, again.text(answer), answer.slots) == (120, "fine", {3})
    assert again.warnings == []


def test_a_state_that_is_gone_is_read_once_more(tiny_llama: Path, tmp_path: Path) -> None:
    driver = Slots(tiny_llama, tmp_path)
    driver.ask(PROMPT, force="abc", id_slot=2)
    other = driver.ask((9, *PROMPT[1:]), force="abc", id_slot=0)
    (entry, *_) = [one for one in driver.engine._host.entries() if one[1][0] == PROMPT[0]]
    driver.engine._host.forget(entry[1])
    n = driver.must("save", 2, "two")
    assert n == len(entry[1])
    assert driver.must("save", 0, "zero") == n
    assert other.end == "eos"
    again = Slots(tiny_llama, tmp_path)
    again.must("restore", 0, "two")
    assert again.ask(QUESTION, force="fine").cached == 120


def test_what_a_slot_holds_is_what_it_last_held(tiny_llama: Path, tmp_path: Path) -> None:
    driver = Slots(tiny_llama, tmp_path)
    driver.ask(PROMPT, force="abc", id_slot=0)
    driver.ask(PROMPT[:60], force="abc", id_slot=0, cache_prompt=False)
    assert driver.must("save", 0, "short") == 60
    assert driver.must("restore", 1, "short") == 60
    assert driver.must("save", 1, "copy") == 60
    assert driver.act("save", 3, "none").error == "slot 3 holds no prompt yet"
    assert not (tmp_path / "none").exists()


def test_erasing_means_reading_again(tiny_llama: Path, tmp_path: Path) -> None:
    driver = Slots(tiny_llama, tmp_path, cache_dir=str(tmp_path / "cache"))
    driver.ask(PROMPT, force="abc", id_slot=1)
    driver.ask((9, *PROMPT[1:]), force="abc", id_slot=2)
    assert driver.must("erase", 1) == 150
    assert driver.must("erase", 1) == 0
    assert driver.ask(PROMPT, max_tokens=1).cached == 0
    assert driver.ask((9, *PROMPT[1:]), max_tokens=1).cached == 149


def test_a_slot_that_holds_the_same_keeps_it(tiny_llama: Path, tmp_path: Path) -> None:
    driver = Slots(tiny_llama, tmp_path)
    driver.ask(PROMPT, force="abc", id_slot=1)
    driver.must("save", 1, "one")
    driver.must("restore", 0, "one")
    driver.must("erase", 1)
    assert driver.ask(QUESTION, max_tokens=1).cached == 120


def test_what_was_not_read_to_its_end_is_not_saved(tiny_llama: Path, tmp_path: Path) -> None:
    driver = Slots(tiny_llama, tmp_path, cache_ram=0, n_ctx=2048)
    driver.ask(PROMPT * 8, max_tokens=1, id_slot=1)
    id = driver.ask_for("save", 1, "one")
    driver.step()
    assert driver.engine._scheduler.running[0].n_pending > 0
    driver.engine.close(0)
    driver.step()
    assert driver.done[id].error == "what the slot held could not be read again"
    assert list(tmp_path.iterdir()) == []


def test_jobs_wait_for_their_slot_and_keep_their_order(tiny_llama: Path, tmp_path: Path) -> None:
    driver = Slots(tiny_llama, tmp_path)
    answer = driver.submit(PROMPT, force="abcdefgh", id_slot=1)
    driver.step()
    save, erase = driver.ask_for("save", 1, "one"), driver.ask_for("erase", 1)
    free = driver.ask_for("erase", 2)
    driver.step()
    assert set(driver.done) == {free}
    later = driver.submit(PROMPT, max_tokens=1, id_slot=1)
    driver.run()
    assert (answer.end, later.end) == ("eos", "limit")
    assert list(driver.done)[1:] == [save, erase]
    assert driver.done[save].outcome.n_tokens == driver.done[erase].outcome.n_tokens == 150
    assert later.cached == 0, "it came after the slot was erased"


def test_failures_leave_the_slot_as_it_was(tiny_llama: Path, tiny_gemma3: Path, tmp_path: Path) -> None:
    driver = Slots(tiny_llama, tmp_path)
    driver.ask(PROMPT, force="abc", id_slot=1)
    driver.must("save", 1, "good")
    whole = (tmp_path / "good").read_bytes()
    (tmp_path / "cut").write_bytes(whole[:-1])
    (tmp_path / "altered").write_bytes(whole[:-100] + b"\0" * 100)
    (tmp_path / "foreign").write_text("hello")
    (tmp_path / "link").symlink_to("good")
    other = Slots(tiny_gemma3, tmp_path)
    other.ask(PROMPT, max_tokens=1, id_slot=0)
    other.must("save", 0, "gemma")
    reasons = {
        "cut": "is damaged",
        "altered": "is damaged",
        "foreign": "is not a file of saved state",
        "link": "is a link",
        "gemma": "was made with another model",
        "nothing": "does not exist",
    }
    for name, reason in reasons.items():
        done = driver.act("restore", 1, name)
        assert (done.error_kind, reason in done.error, name in done.error) == ("invalid", True, True), done.error
    assert "is a link" in driver.act("save", 1, "link").error
    assert (tmp_path / "good").read_bytes() == whole
    driver.must("save", 1, "again")
    assert (tmp_path / "again").stat().st_size == len(whole)
    short = Slots(tiny_llama, tmp_path, n_ctx=128)
    assert "a slot holds at most 128" in short.act("restore", 0, "good").error
    assert "other settings" in Slots(tiny_llama, tmp_path, cache_type_k="bf16").act("restore", 0, "good").error


def test_a_full_disk_and_a_folder_that_is_gone_are_faults_of_the_server(
    tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Slots(tiny_llama, tmp_path)
    driver.ask(PROMPT, force="abc", id_slot=1)

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        done = driver.act("save", 1, "one")
    assert (done.error, done.error_kind) == ("one could not be saved: No space left on device", "fault")
    assert list(tmp_path.iterdir()) == []
    done = driver.act("save", 1, "no/folder")
    assert (done.error_kind, "No such file or directory" in done.error) == ("fault", True)
    assert driver.must("save", 1, "one") > 0


def test_adapters_are_part_of_what_is_saved(tiny_llama: Path, tmp_path: Path) -> None:
    adapter = write_lora(tmp_path / "lora.gguf", seed=1)
    settings: dict[str, object] = {"lora": (ScaledFile(str(adapter)),), "lora_init_without_apply": True}
    driver = Slots(tiny_llama, tmp_path, **settings)
    driver.ask(PROMPT, max_tokens=2, id_slot=1, lora=((0, 1.0),))
    driver.engine._host.forget(next(iter(driver.engine._host.entries()))[1], next(iter(driver.engine._host.entries()))[0])
    driver.must("save", 1, "one")
    again = Slots(tiny_llama, tmp_path, **settings)
    again.must("restore", 2, "one")
    assert again.ask(QUESTION, max_tokens=1).cached == 0
    assert again.ask(QUESTION, max_tokens=1, lora=((0, 0.5),)).cached == 0
    assert again.ask(QUESTION, max_tokens=1, lora=((0, 1.0),)).cached == 120


@pytest.mark.parametrize("kind", ["tiny_mamba", "tiny_gemma3"])
def test_memory_that_cannot_be_cut_goes_on_from_its_end(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    model = request.getfixturevalue(kind)
    first = Slots(model, tmp_path)
    answer = first.ask(PROMPT, force="abc", id_slot=1)
    n = first.must("save", 1, "one")
    whole = (*PROMPT, *answer.tokens)[:n]
    again = Slots(model, tmp_path)
    again.must("restore", 0, "one")
    assert again.ask((*whole, 7, 8, 9), force="fine").cached == n
    assert again.warnings == []


@pytest.mark.parametrize("kind", ["mlp", "qwen2vl"])
def test_a_prompt_with_a_picture_is_saved_and_restored(kind: Vision, tiny_folder: Path, tmp_path: Path) -> None:
    model, projector = write_pair(tiny_folder, kind)
    asked = ((*PROMPT[:60], MEDIA, *PROMPT[:9]), (picture(),))
    first = Slots(model, tmp_path, mmproj=str(projector))
    answer = first.ask(asked[0], media=asked[1], max_tokens=2, id_slot=1)
    assert first.must("save", 1, "one") > 70
    again = Slots(model, tmp_path, mmproj=str(projector))
    again.must("restore", 2, "one")
    repeated = again.ask(asked[0], media=asked[1], max_tokens=2)
    assert (repeated.tokens, repeated.read, again.stats.media_encoded) == (answer.tokens, 1, 0)
    other = again.ask(asked[0], media=(picture(seed=1),), max_tokens=2)
    assert other.cached <= 60 + 13
    forgetful = Slots(model, tmp_path, mmproj=str(projector), cache_ram=0)
    forgetful.ask(asked[0], media=asked[1], max_tokens=2, id_slot=1)
    assert "send the prompt again first" in forgetful.act("save", 1, "two").error
    assert first.warnings == again.warnings == forgetful.warnings == []
