from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from puna.doctor import checks
from puna.doctor.checks import Facts
from puna.doctor.engine import EngineFacts, examine, understand
from puna.gguf import Header

GOOD_ENGINE = EngineFacts(description="llama-cpp-python 1 (AVX AVX2)", model="llama 1M", trial_passed=True)
MODEL = Header(
    path="m.gguf",
    version=3,
    metadata={"general.architecture": "llama", "tokenizer.chat_template": "{{ x }}"},
    list_lengths={},
    n_tensors=2,
    n_params=10,
    quantisation="F16",
    file_bytes=1000,
    needed_bytes=1000,
)
GOOD = Facts(engine=GOOD_ENGINE, tried=True, model=MODEL, features=frozenset({"avx2"}), free_memory=1 << 30, cores=2)
NO_ENGINE = replace(GOOD, engine=EngineFacts(error="it cannot be imported: no wheel"))


def test_nothing_wrong_nothing_said() -> None:
    assert checks.problem(GOOD) == ""
    assert checks.notes(GOOD) == []


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (replace(GOOD, settings_error="--port: no"), "--port: no"),
        (NO_ENGINE, "it cannot be imported"),
        (replace(GOOD, engine=EngineFacts(error="it ended with SIGILL", signal="SIGILL")), "built for another CPU"),
        (replace(GOOD, model=None, model_error="there is no model file at x"), "there is no model file at x"),
        (replace(GOOD, model=replace(MODEL, needed_bytes=1500)), "promises 1500 bytes, 500 of them are missing"),
        (replace(GOOD, model=replace(MODEL, metadata={})), "does not say which architecture"),
        (replace(GOOD, model=replace(MODEL, n_tensors=0)), "no weights"),
        (replace(GOOD, model=replace(MODEL, metadata={"general.architecture": "clip"})), "image or audio part"),
        (replace(GOOD, free_memory=999), "needs 0 MiB of memory"),
        (replace(GOOD, missing_parts=("m-00002-of-00002.gguf",)), "m-00002-of-00002.gguf is not beside it"),
        (replace(GOOD, engine=replace(GOOD_ENGINE, trial_passed=False, signal="SIGILL", error="x")), "--no-repack"),
        (replace(GOOD, engine=replace(GOOD_ENGINE, trial_passed=False, error="unknown model architecture")), "unknown model"),
        (replace(GOOD, engine=replace(GOOD_ENGINE, trial_passed=False)), "did not finish"),
    ],
)
def test_each_fault_is_put_in_words(facts: Facts, expected: str) -> None:
    assert expected in checks.problem(facts)


def test_the_first_thing_wrong_is_the_one_to_mend_first() -> None:
    broken = replace(NO_ENGINE, model_error="no file", free_memory=0)
    assert checks.problem(broken) == "it cannot be imported: no wheel"
    assert checks.problem(replace(broken, settings_error="-c: no")) == "-c: no"


def test_an_untried_model_is_not_blamed() -> None:
    assert checks.problem(replace(GOOD, tried=False, engine=replace(GOOD_ENGINE, trial_passed=False))) == ""


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (replace(GOOD, features=frozenset({"amx_tile"}), compiler="c++ (Debian 12.2.0-14) 12.2.0"), "leaves AMX out"),
        (replace(GOOD, engine=replace(GOOD_ENGINE, description="x (AVX)")), "without AVX2"),
        (replace(GOOD, quota=0.5), "0.5 cores' worth"),
        (replace(GOOD, free_memory=1200), "memory is short"),
        (replace(GOOD, model=replace(MODEL, metadata={"general.architecture": "llama"})), "no chat template"),
        (replace(GOOD, engine=replace(GOOD_ENGINE, decoder=False)), "does not generate text"),
    ],
)
def test_what_is_worth_knowing(facts: Facts, expected: str) -> None:
    assert any(expected in note for note in checks.notes(facts))
    assert checks.problem(facts) == ""


@pytest.mark.parametrize(
    ("version", "old"),
    [
        ("c++ (Debian 12.2.0-14+deb12u1) 12.2.0", True),
        ("g++ (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0", True),
        ("g++ (GCC) 14.2.1 20240912", False),
        ("g++ (Ubuntu 13.2.0-23ubuntu4) 13.2.0", False),
        ("Debian clang version 11.0.1-2", False),
        ("Apple clang version 15.0.0 (clang-1500.3.9.4)", False),
        ("", False),
    ],
)
def test_which_compilers_are_old(version: str, old: bool) -> None:
    assert checks.is_old_gcc(version) is old


def test_missing_parts(tmp_path: Path) -> None:
    first, second = (tmp_path / f"m-0000{n}-of-00002.gguf" for n in (1, 2))
    first.touch()
    header = replace(MODEL, path=str(first), metadata={"split.count": 2})
    assert checks.missing_parts(header) == (str(second),)
    second.touch()
    assert checks.missing_parts(header) == ()


def test_the_child_is_understood_however_it_ends() -> None:
    engine = '{"engine": "e (AVX)", "accelerator": false}\n'
    whole = engine + '{"model": "llama", "decoder": true}\n{"trial": "ok"}\n'
    assert understand(whole, "", 0, 1) == EngineFacts(description="e (AVX)", model="llama", trial_passed=True)
    assert understand(engine, "", -4, 1) == EngineFacts(description="e (AVX)", error="it ended with SIGILL", signal="SIGILL")
    assert understand(engine + '{"error": "no such file"}\n', "", 1, 1).error == "no such file"
    assert understand("", "Traceback\nImportError: x\n", 1, 1).error == "it ended with code 1: ImportError: x"
    assert understand(engine, "", None, 30).error == "nothing came of it within 30 seconds"
    assert understand("noise\n[1]\n" + engine, "", 0, 1).description == "e (AVX)"


def test_time_runs_out_without_an_exception() -> None:
    assert examine((), timeout=0.001).error == "nothing came of it within 0 seconds"
