from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from gguf import GGML_QUANT_SIZES, GGUFWriter

from puna.errors import StartupError
from puna.gguf import TENSOR_TYPES, find_projector, parts, read_header, read_tensor, total_bytes


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gguf") / "m.gguf"
    writer = GGUFWriter(path, "llama")
    writer.add_name("näme")
    writer.add_context_length(77)
    writer.add_float32("a.float", 1.5)
    writer.add_bool("a.bool", True)
    writer.add_array("a.numbers", [1, 2, 3])
    writer.add_token_list(["a", "bb", "ccc", "ü"])
    writer.add_tensor("small", np.ones((3, 5), np.float32))
    writer.add_tensor("large", np.ones((8, 64), np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def reason(path: Path) -> str:
    with pytest.raises(StartupError) as caught:
        read_header(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_what_a_header_says(model: Path) -> None:
    header = read_header(model)
    assert (header.architecture, header.name, header.n_ctx_train, header.n_vocab) == ("llama", "näme", 77, 4)
    assert (header.n_tensors, header.n_params, header.quantisation) == (2, 3 * 5 + 8 * 64, "F16")
    assert header.metadata["a.float"] == 1.5
    assert header.metadata["a.bool"] is True
    assert header.list_lengths == {"a.numbers": 3, "tokenizer.ggml.tokens": 4}


def test_a_whole_file_lacks_nothing(model: Path) -> None:
    header = read_header(model)
    assert header.missing_bytes == 0
    assert header.needed_bytes <= header.file_bytes < header.needed_bytes + 32


def test_every_cut_is_noticed(model: Path, tmp_path: Path) -> None:
    content = model.read_bytes()
    needed = read_header(model).needed_bytes
    file = tmp_path / "cut.gguf"
    for length in [*range(120), *range(120, needed, 11)]:
        file.write_bytes(content[:length])
        try:
            header = read_header(file)
        except StartupError as error:
            assert "cut short" in str(error) or "is empty" in str(error) or length < 4
        else:
            assert header.missing_bytes == needed - length


def test_no_damage_crashes_the_reader(model: Path, tmp_path: Path) -> None:
    content = model.read_bytes()
    file = tmp_path / "bad.gguf"
    for at in range(4, 400, 3):
        for value in (0x00, 0x7F, 0xFF):
            file.write_bytes(content[:at] + bytes([value]) + content[at + 1 :])
            try:
                read_header(file)
            except StartupError as error:
                assert str(file) in str(error)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "is empty"),
        (b"GG", "is not a GGUF file"),
        (b"GGUF", "cut short"),
        (b"hello world, this is text", "is not a GGUF file: it starts with b'hell'"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (b"<!DOCTYPE html><html>", "web page"),
        (b"PK\x03\x04" + bytes(20), "convert it to GGUF"),
        (struct.pack("<Q", 500) + b'{"a":1}          ', "safetensors"),
        (b"ggjt" + bytes(20), "before GGUF"),
        (b"GGUF" + struct.pack(">I", 3) + bytes(20), "big-endian"),
        (b"GGUF" + struct.pack("<I", 1) + bytes(20), "has GGUF version 1"),
        (b"GGUF" + struct.pack("<I", 9) + bytes(20), "has GGUF version 9"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 40, 0), "claims to have 1099511627776 tensors"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q1sI", 1, b"k", 99), "unknown type 99"),
    ],
)
def test_what_is_no_model_is_told_apart(tmp_path: Path, content: bytes, expected: str) -> None:
    file = tmp_path / "x.gguf"
    file.write_bytes(content)
    assert expected in reason(file)


def test_paths_that_lead_nowhere(tmp_path: Path) -> None:
    assert reason(tmp_path / "none.gguf").startswith("there is no model file at")
    assert "is a folder" in reason(tmp_path)


def test_block_sizes_are_the_known_ones() -> None:
    known = {int(kind): (kind.name, *size) for kind, size in GGML_QUANT_SIZES.items() if kind.name != "Q8_1"}
    shared = TENSOR_TYPES.keys() & known.keys()
    assert len(shared) > 25
    assert {kind: TENSOR_TYPES[kind] for kind in shared} == {kind: known[kind] for kind in shared}


def test_parts_of_a_model() -> None:
    assert parts("a/m-00002-of-00003.gguf", 3) == [f"a/m-0000{n}-of-00003.gguf" for n in (1, 2, 3)]
    assert parts("m.gguf", 3) == []
    assert parts("m-00001-of-00001.gguf", 1) == []


def test_tensors_are_found_and_read(model: Path) -> None:
    header = read_header(model)
    assert {name: (tensor.shape, tensor.type) for name, tensor in header.tensors.items()} == {
        "small": ((5, 3), "F32"),
        "large": ((64, 8), "F16"),
    }
    assert read_tensor(header, header.tensors["large"]) == np.ones((8, 64), np.float16).tobytes()
    assert header.kinds["a.float"] == 6
    assert header.kinds["a.numbers"] == 9


def test_a_tensor_that_the_file_no_longer_has_is_missed(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "cut.gguf"
    file.write_bytes(model.read_bytes()[:-40])
    header = read_header(file)
    with pytest.raises(StartupError, match="ends inside of 'large'"):
        read_tensor(header, header.tensors["large"])


def test_the_files_of_one_model_count_together(tmp_path: Path) -> None:
    for number, size in ((1, 10), (2, 30)):
        (tmp_path / f"m-{number:05d}-of-00002.gguf").write_bytes(bytes(size))
    (tmp_path / "m.gguf").write_bytes(bytes(7))
    assert total_bytes(str(tmp_path / "m-00001-of-00002.gguf")) == 40
    assert total_bytes(str(tmp_path / "m.gguf")) == 7
    with pytest.raises(FileNotFoundError):
        total_bytes(str(tmp_path / "m-00001-of-00003.gguf"))


def test_a_projector_beside_a_model(tmp_path: Path) -> None:
    def files(*names: str) -> str:
        for path in tmp_path.iterdir():
            path.unlink()
        for name in names:
            (tmp_path / name).touch()
        return Path(find_projector(str(tmp_path / names[0]))).name

    assert files("m-Q8_0.gguf") == ""
    assert files("m-Q8_0.gguf", "mmproj.gguf") == "mmproj.gguf"
    assert files("m-Q8_0.gguf", "m-Q4_K_M.gguf", "mmproj-BF16.gguf", "mmproj-F16.gguf") == "mmproj-F16.gguf"
    assert files("m-00001-of-00002.gguf", "m-00002-of-00002.gguf", "mmproj-x.gguf") == "mmproj-x.gguf"
    assert files("m-Q8_0.gguf", "other.gguf", "mmproj-other-f16.gguf") == ""
    assert files("m-Q8_0.gguf", "other.gguf", "mmproj-other-f16.gguf", "M.mmproj-Q8_0.gguf") == "M.mmproj-Q8_0.gguf"
    assert find_projector(str(tmp_path / "none" / "m.gguf")) == ""
