"""The doctor's child process on the real engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from puna.cli import main
from puna.doctor.engine import examine


def test_without_a_model_the_engine_alone_is_described() -> None:
    facts = examine(())
    assert facts.description.startswith("llama-cpp-python ")
    assert (facts.error, facts.signal, facts.trial_passed) == ("", "", False)


@pytest.mark.parametrize(
    ("fixture", "decoder"), [("tiny_llama", True), ("tiny_mamba", True), ("tiny_gemma3", True), ("tiny_bert", False)]
)
def test_a_model_is_tried(request: pytest.FixtureRequest, fixture: str, decoder: bool) -> None:
    facts = examine([str(request.getfixturevalue(fixture))])
    assert (facts.error, facts.trial_passed, facts.decoder) == ("", True, decoder)
    assert facts.model


def test_a_damaged_model_is_an_error_in_words(tiny_llama: Path, tmp_path: Path) -> None:
    file = tmp_path / "cut.gguf"
    file.write_bytes(tiny_llama.read_bytes()[:-1000])
    facts = examine([str(file)])
    assert facts.description
    assert not facts.trial_passed
    assert str(file) in facts.error


def test_the_whole_doctor(tiny_llama: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "-m", str(tiny_llama)]) == 0
    assert "trial      a prompt was read" in capsys.readouterr().out
    file = tmp_path / "cut.gguf"
    file.write_bytes(tiny_llama.read_bytes()[:-1000])
    assert main(["doctor", "-m", str(file)]) == 1
    assert "1000 of them are missing" in capsys.readouterr().out.splitlines()[-1]
