"""Files of adapters and control vectors: what they do, and what is said of those that are wrong."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFWriter

from puna import gguf
from puna.config import ScaledFile
from puna.errors import StartupError
from puna.llama.control_vector import read_control_vector
from puna.llama.lora import Lora, check_lora
from puna.llama.model import Model
from puna.types import AdapterFacts, Sampling
from tests import tiny
from tests.engine.driver import Driver
from tests.tiny.weights import WeightFile

FREE = Sampling(temperature=0, ignore_eos=True, n_probs=3)
Write = Callable[[Path], object]


def refusal(model: Path, **settings: object) -> str:
    with pytest.raises(StartupError) as caught:
        Driver(model, **settings)
    return caught.value.message


def adapter(path: Path, tensors: dict[str, tuple[int, ...]], dtype: str = "f4", **metadata: str | float) -> None:
    """An adapter with tensors of these shapes, slowest dimension first, and some entries replaced."""
    entries: dict[str, str | float] = {"general.type": "adapter", "adapter.type": "lora", "adapter.lora.alpha": 1.0}
    writer = GGUFWriter(path, str(metadata.pop("arch", "llama")))
    for key, value in {**entries, **{key.replace("__", "."): value for key, value in metadata.items()}}.items():
        if isinstance(value, str):
            writer.add_string(key, value)
        else:
            writer.add_float64(key, value) if key in metadata else writer.add_float32(key, value)
    for name, shape in tensors.items():
        writer.add_tensor(name, np.ones(shape, dtype))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def pair(
    name: str = "blk.0.attn_q.weight", a: tuple[int, ...] = (4, 64), b: tuple[int, ...] = (64, 4)
) -> dict[str, tuple[int, ...]]:
    return {f"{name}.lora_a": a, f"{name}.lora_b": b}


def cut(path: Path) -> None:
    tiny.write_lora(path)
    path.write_bytes(path.read_bytes()[:-1000])


@pytest.mark.parametrize(
    "write, reason",
    [
        (lambda path: None, "there is no adapter file at"),
        (lambda path: path.mkdir(), "is a folder, not a file"),
        (lambda path: path.write_bytes(b"PK\x03\x04" + bytes(99)), "it may be a PyTorch or safetensors file"),
        (lambda path: path.write_bytes(b""), "is empty"),
        (cut, "bytes are missing"),
        (tiny.write_llama, "the file holds a model, not an adapter"),
        (lambda path: tiny.write_lora(path, arch="gemma3"), "made for a model of the architecture 'gemma3', this one is 'llama'"),
        (lambda path: tiny.write_lora(path, n_embd=32), "its matrices of [32, 4] and [4, 32] do not fit"),
        (lambda path: tiny.write_lora(path, n_layer=3), "the model has no tensor 'blk.2.attn_"),
        (lambda path: adapter(path, pair(), adapter__type="other"), "an adapter of the type 'other', not 'lora'"),
        (lambda path: adapter(path, pair(), adapter__type=1.0), "its entry 'adapter.type' has the wrong type"),
        (lambda path: adapter(path, pair(), adapter__lora__alpha="1"), "its entry 'adapter.lora.alpha' has the wrong type"),
        (lambda path: adapter(path, {}), "it holds no tensors"),
        (lambda path: adapter(path, {"blk.0.attn_q.weight.lora_a": (4, 64)}), "lacks the other one of the pair"),
        (lambda path: adapter(path, {"blk.0.attn_q.weight": (64, 64)}), "is neither of the two of a pair"),
        (lambda path: adapter(path, pair(b=(64, 5))), "do not fit"),
        (lambda path: adapter(path, pair(a=(2, 4, 64), b=(2, 64, 4))), "do not fit"),
        (lambda path: adapter(path, pair("token_embd.weight", (4, 64), (64, 4))), "do not fit"),
        (lambda path: adapter(path, pair("output_norm.weight", (1, 64), (1, 1))), "do not fit"),
        (lambda path: adapter(path, pair(), "i4"), "has the type I32, which no weights have"),
        (lambda path: tiny.write_lora(path, invocation=(5, 99999)), "invoked by token 99999, which is not in"),
        (lambda path: tiny.write_lora(path, size=1e25), "grow beyond all bounds"),
    ],
)  # fmt: skip
def test_a_wrong_adapter_is_said_so_at_the_start(tiny_llama: Path, tmp_path: Path, write: Write, reason: str) -> None:
    path = tmp_path / "adapter.gguf"
    write(path)
    good = ScaledFile(str(tiny.write_lora(tmp_path / "good.gguf")))
    message = refusal(tiny_llama, lora=(good, ScaledFile(str(path))))
    assert reason in message
    assert str(path) in message or "bounds" in reason


def test_damaged_adapters_never_end_the_process(tiny_llama: Path, tmp_path: Path) -> None:
    whole = tiny.write_lora(tmp_path / "good.gguf", invocation=(5, 6), n_layer=1).read_bytes()
    tensors = gguf.read_header(tiny_llama).tensors
    head = min(tensor.start for tensor in gguf.read_header(tmp_path / "good.gguf").tensors.values())
    path = str(tmp_path / "bad.gguf")
    chance = random.Random(1)
    with Model(str(tiny_llama)) as model:
        for at in range(0, head, 3):
            Path(path).write_bytes(whole[:at] + bytes([chance.randrange(256)]) + whole[at + 1 :])
            try:
                check_lora(path, tensors, "llama")
                Lora(model, path)
            except StartupError as error:
                assert path in error.message


def test_what_is_told_of_adapters(tiny_llama: Path, tmp_path: Path) -> None:
    words = {"adapter.lora.task_name": "sums", "adapter.lora.prompt_prefix": "Ädd: "}
    one = tiny.write_lora(tmp_path / "one.gguf", metadata=words)
    two = tiny.write_lora(tmp_path / "two.gguf", invocation=(5, 6))
    files = (ScaledFile(str(one), 0.5), ScaledFile(str(two)))
    told = (
        AdapterFacts(path=str(one), scale=0.5, task_name="sums", prompt_prefix="Ädd: "),
        AdapterFacts(path=str(two), scale=1.0, invocation=(5, 6)),
    )
    assert Driver(tiny_llama, lora=files).facts.adapters == told
    later = Driver(tiny_llama, lora=files, lora_init_without_apply=True).facts.adapters
    assert [adapter.scale for adapter in later] == [0.0, 0.0]


def test_an_adapter_of_the_table_of_tokens(tiny_llama: Path, tmp_path: Path) -> None:
    path = tmp_path / "table.gguf"
    adapter(path, pair("token_embd.weight", (len(tiny.spm_vocab()), 4), (64, 4)))
    driver = Driver(tiny_llama, lora=(ScaledFile(str(path)),))
    plain, changed = (driver.ask("table", lora=lora, max_tokens=5, sampling=FREE) for lora in ((), ((0, 1.0),)))
    assert plain.probs != changed.probs


# control vectors


def test_a_control_vector_changes_what_is_said(tiny_llama: Path, tmp_path: Path) -> None:
    path = str(tiny.write_control_vector(tmp_path / "cv.gguf"))

    def probs(*files: ScaledFile, **settings: object) -> object:
        driver = Driver(tiny_llama, control_vectors=files, flash_attention="off", **settings)
        answer = driver.ask("what is said", max_tokens=5, sampling=FREE)
        # a longer context is another one of the engine's, and has to be told of the vector too
        driver.ask("to grow " * 200, max_tokens=0)
        again = driver.ask("what is said again", max_tokens=5, sampling=FREE)
        return answer.probs, again.probs

    plain, once, half = probs(), probs(ScaledFile(path)), probs(ScaledFile(path, 0.5))
    assert once != plain != half != once
    assert probs(ScaledFile(path, 0.5), ScaledFile(path, 0.5)) == once
    assert probs(ScaledFile(path), ScaledFile(path, -1.0)) == plain
    assert probs(ScaledFile(path), n_ctx=2048)[1] != probs(n_ctx=2048)[1]  # type: ignore[index]  # two lists


def test_a_control_vector_is_part_of_every_key(tiny_llama: Path, tmp_path: Path) -> None:
    path = str(tiny.write_control_vector(tmp_path / "cv.gguf"))
    lora = (ScaledFile(str(tiny.write_lora(tmp_path / "lora.gguf"))),)
    keys = set()
    for settings in ({}, {"control_vectors": (ScaledFile(path),)}, {"control_vectors": (ScaledFile(path, 0.5),)}):
        driver = Driver(tiny_llama, lora=lora, **settings)
        for wanted in ((), ((0, 1.0),)):
            driver.submit("keys", lora=wanted, max_tokens=2)
            driver.step()
            keys.add(driver.engine._scheduler.running[0].key_at(3))
            driver.run()
    assert len(keys) == 6


def test_layers_of_a_control_vector(tmp_path: Path) -> None:
    path = str(tiny.write_control_vector(tmp_path / "cv.gguf", n_embd=8, layers=(1, 3)))
    files = [(path, 2.0)]
    vector = read_control_vector(files, n_embd=8, n_layer=5)
    assert vector.directions.shape == (4, 8)
    assert [bool(row.any()) for row in vector.directions] == [True, False, True, False]
    assert (vector.first, vector.last) == (1, 4)
    single = read_control_vector([(path, 1.0)], n_embd=8, n_layer=5)
    assert np.array_equal(vector.directions, 2 * single.directions)
    narrow = read_control_vector(files, n_embd=8, n_layer=5, layers=(2, 99))
    assert (narrow.first, narrow.last) == (2, 4)
    assert len({vector.digest, single.digest, narrow.digest}) == 3
    with pytest.raises(StartupError, match="begin at layer 5, and the model's last one is 4"):
        read_control_vector(files, n_embd=8, n_layer=5, layers=(5, 0))


def directions(path: Path, values: dict[str, object]) -> None:
    file = WeightFile(path, "controlvector", seed=0)
    for name, value in values.items():
        file.writer.add_tensor(name, np.asarray(value))
    file.finish()


@pytest.mark.parametrize(
    "write, reason",
    [
        (lambda path: None, "there is no control vector file at"),
        (lambda path: path.write_bytes(b"nothing of the kind"), "is not a GGUF file"),
        (lambda path: path.write_bytes(tiny.write_control_vector(path).read_bytes()[:-20]), "bytes are missing"),
        (lambda path: directions(path, {}), "it holds no tensors"),
        (lambda path: tiny.write_control_vector(path, n_embd=32), "has the shape [32], the model's is [64]"),
        (lambda path: tiny.write_control_vector(path, layers=(0,)), "for layer 0, and the model's layers are 1 to 1"),
        (lambda path: tiny.write_control_vector(path, layers=(2,)), "for layer 2, and the model's layers are 1 to 1"),
        (lambda path: directions(path, {"direction.x": np.ones(64, "f4")}), "is no direction of a layer"),
        (lambda path: directions(path, {"direction.1": np.ones(64, "f2")}), "has the type F16, not F32"),
        (lambda path: directions(path, {"direction.1": np.ones((64, 1), "f4")}), "has the shape [1, 64]"),
        (lambda path: directions(path, {"direction.1": np.full(64, np.nan, "f4")}), "are finite"),
        (tiny.write_lora, "is no direction of a layer"),
    ],
)  # fmt: skip
def test_a_wrong_control_vector_is_said_so_at_the_start(tiny_llama: Path, tmp_path: Path, write: Write, reason: str) -> None:
    path = tmp_path / "cv.gguf"
    write(path)
    message = refusal(tiny_llama, control_vectors=(ScaledFile(str(path)),))
    assert reason in message
    assert str(path) in message
