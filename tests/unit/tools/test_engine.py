from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from puna.doctor.checks import is_old_gcc
from tools import engine

GCC12 = "c++ (Debian 12.2.0-14+deb12u1) 12.2.0"
GCC14 = "g++ (GCC) 14.2.1 20240912"
VARIABLES = ("CFLAGS", "CXXFLAGS", "CMAKE_ARGS", "CC", "CXX")


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(engine, "compiler_version", lambda: GCC14)
    monkeypatch.setattr(engine, "cpu_features", lambda: ["avx2"])


class Pip:
    """Stands in for the pip processes: notes commands, and makes the wheel that a build would."""

    def __init__(self, *, fails: bool = False) -> None:
        self.commands: list[list[str]] = []
        self.environments: list[dict[str, str]] = []
        self._code = 1 if fails else 0

    def __call__(self, command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        self.commands.append(command)
        environment = options.get("env")
        self.environments.append(environment if isinstance(environment, dict) else {})
        if "wheel" in command and self._code == 0:
            Path(command[command.index("--wheel-dir") + 1], "llama_cpp_python-0-py3-none-any.whl").touch()
        return subprocess.CompletedProcess(command, self._code)

    @property
    def verbs(self) -> list[str]:
        return [command[3] for command in self.commands]


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> Pip:
    fake = Pip()
    monkeypatch.setattr(subprocess, "run", fake)
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    return fake


@pytest.mark.parametrize("version", [GCC12, GCC14, "Apple clang version 15.0.0", "g++ (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0", ""])
def test_builder_and_doctor_agree_on_old_compilers(version: str) -> None:
    assert engine.is_old_gcc(version) is is_old_gcc(version) is (version == GCC12 or "11.4.0" in version)


@pytest.mark.parametrize(
    ("features", "compiler", "left_out"),
    [(["amx_tile"], GCC12, True), (["amx_tile"], GCC14, False), (["avx2"], GCC12, False), (["amx_bf16", "avx2"], GCC12, True)],
)
def test_amx_is_left_out_where_the_compiler_gets_it_wrong(
    monkeypatch: pytest.MonkeyPatch, features: list[str], compiler: str, left_out: bool
) -> None:
    monkeypatch.setattr(engine, "cpu_features", lambda: features)
    monkeypatch.setattr(engine, "compiler_version", lambda: compiler)
    monkeypatch.setenv("CFLAGS", "-O2")
    environment, reasons = engine.build_environment()
    assert environment["CFLAGS"] == ("-O2 " + engine.NO_AMX if left_out else "-O2")
    assert environment["CXXFLAGS"] == (engine.NO_AMX if left_out else "")
    assert bool(reasons) is left_out


def test_whatever_shapes_the_binary_has_a_cache_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = engine.cache_folder({"CFLAGS": ""})
    folders = {plain, engine.cache_folder({"CFLAGS": "-O3"})}
    monkeypatch.setattr(engine, "cpu_features", lambda: ["avx512f"])
    folders.add(engine.cache_folder({"CFLAGS": ""}))
    monkeypatch.setattr(engine, "compiler_version", lambda: GCC12)
    folders.add(engine.cache_folder({"CFLAGS": ""}))
    monkeypatch.setattr(engine, "VERSION", "9.9.9")
    folders.add(engine.cache_folder({"CFLAGS": ""}))
    assert len(folders) == 5


def test_a_wheel_is_built_once_and_installed(pip: Pip, tmp_path: Path) -> None:
    engine.install()
    assert pip.verbs == ["wheel", "install"]
    assert int(pip.environments[0]["CMAKE_BUILD_PARALLEL_LEVEL"]) >= 1
    engine.install()
    assert pip.verbs == ["wheel", "install"]
    (tmp_path / "puna-engine").unlink()
    engine.install()
    assert pip.verbs == ["wheel", "install", "install"]


def test_a_rebuild_builds_again(pip: Pip) -> None:
    engine.install()
    engine.install(rebuild=True)
    assert pip.verbs == ["wheel", "install"] * 2


def test_a_failed_build_leaves_nothing_behind(pip: Pip, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(subprocess, "run", Pip(fails=True))
    with pytest.raises(SystemExit, match="could not be built"):
        engine.install()
    assert not (tmp_path / "puna-engine").exists()
    assert not list((tmp_path / "cache").rglob("*.whl"))
    assert not list((tmp_path / "cache").rglob("build-*"))


def test_no_cmake_is_told(pip: Pip, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match="needs cmake"):
        engine.install()


def test_a_second_builder_waits_for_the_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "cache" / "engine" / "x"
    entered, order = threading.Event(), []

    def first() -> None:
        with engine.one_at_a_time(folder):
            entered.set()
            waiting.wait(0.2)
            order.append("first")

    waiting = threading.Event()
    thread = threading.Thread(target=first)
    thread.start()
    assert entered.wait(5)
    with engine.one_at_a_time(folder):
        order.append("second")
    thread.join()
    assert order == ["first", "second"]
    assert "another process is building the engine" in capsys.readouterr().out


def test_it_needs_nothing_but_the_standard_library() -> None:
    output = subprocess.run(
        [sys.executable, "-S", "-c", "import sys; sys.path.insert(0, 'tools'); import engine; print(engine.VERSION)"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
    ).stdout
    assert output.strip() == engine.VERSION


def test_the_pinned_version_is_the_one_that_is_built() -> None:
    project = (Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8")
    assert f'"llama-cpp-python=={engine.VERSION}"' in project
