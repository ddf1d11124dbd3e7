"""Read the header of a GGUF file without the engine: what model it is, and whether the file is whole."""

from __future__ import annotations

import contextlib
import math
import mmap
import os
import re
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from puna.errors import StartupError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MOST_ENTRIES = 1 << 20
"""More metadata entries or tensors than this, or longer keys, mean a broken file."""

Scalar = str | int | float | bool

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""GGUF's value types that have a fixed size, as `struct` writes them."""
STRING, ARRAY = 8, 9
SIZES = {"I": 4, "Q": 8}
DEEPEST_LIST = 3
MOST_DIMENSIONS = 8

TENSOR_TYPES = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22), 7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 36), 10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110), 12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210), 15: ("Q8_K", 256, 292), 16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74),
    18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50), 20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136), 24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4), 27: ("I64", 1, 8), 28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2), 34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66), 39: ("MXFP4", 32, 17),
    40: ("NVFP4", 64, 36), 41: ("Q1_0", 128, 18),
}  # fmt: skip
"""Type number to name, elements in a block, and bytes of a block."""


@dataclass(frozen=True)
class Tensor:
    """What a header says of one tensor."""

    name: str
    shape: tuple[int, ...]
    """The dimension that varies fastest first."""
    type: str
    start: int
    """Where it begins in the file, in bytes."""
    n_bytes: int


@dataclass(frozen=True)
class Header:
    """What a GGUF file says of itself."""

    path: str
    version: int
    metadata: dict[str, Scalar]
    """Single values only; lists, such as the vocabulary, are left out."""
    list_lengths: dict[str, int]
    """How long those lists are."""
    n_tensors: int
    n_params: int
    quantisation: str
    """The number format that most parameters have."""
    file_bytes: int
    needed_bytes: int
    """How long the file must be to hold every tensor."""
    kinds: dict[str, int] = field(default_factory=dict)
    """GGUF's numbers for the types of all metadata entries."""
    tensors: dict[str, Tensor] = field(default_factory=dict)
    """By name."""

    @property
    def architecture(self) -> str:
        return str(self.metadata.get("general.architecture", ""))

    @property
    def name(self) -> str:
        return str(self.metadata.get("general.name", ""))

    @property
    def n_ctx_train(self) -> int:
        value = self.metadata.get(f"{self.architecture}.context_length", 0)
        return value if isinstance(value, int) else 0

    @property
    def n_vocab(self) -> int:
        return self.list_lengths.get("tokenizer.ggml.tokens", 0)

    @property
    def missing_bytes(self) -> int:
        """How much of the file is not there."""
        return max(0, self.needed_bytes - self.file_bytes)


def check_start(path: str | os.PathLike[str]) -> None:
    """Look at a file's first bytes only. Raises `StartupError` as `read_header` does."""
    with _opened(os.fspath(path)):
        pass


def read_header(path: str | os.PathLike[str], *, what: str = "model") -> Header:
    """Read a file's header. Raises `StartupError` with the path and, in words, why it cannot be `what` it should be."""
    name = os.fspath(path)
    with _opened(name, what) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return _Reader(name, data).header()


def read_tensor(header: Header, tensor: Tensor) -> bytes:
    """A tensor's bytes as they are in the file. Raises `StartupError` where the file does not have them."""
    with _opened(header.path) as file:
        file.seek(tensor.start)
        data = file.read(tensor.n_bytes)
    if len(data) < tensor.n_bytes:
        raise StartupError(f"{header.path} is cut short: it ends inside of {tensor.name!r}")
    return data


def total_bytes(path: str) -> int:
    """Size of a model's file, or of all its files together. Raises OSError."""
    found = re.search(r"-of-(\d{5})\.gguf$", path)
    return sum(os.stat(name).st_size for name in parts(path, int(found.group(1)) if found else 0) or [path])


def parts(path: str, count: int) -> list[str]:
    """The names of all files of a model in `count` parts, from the name of one of them."""
    found = re.fullmatch(r"(.*)-\d{5}-of-\d{5}\.gguf", path)
    if not found or count < 2:
        return []
    return [f"{found.group(1)}-{number:05d}-of-{count:05d}.gguf" for number in range(1, count + 1)]


def find_projector(model: str) -> str:
    """The projector that lies beside a model's file: an `mmproj*.gguf` of its name, or, where no other model is, of any; empty
    if there is none. Of several formats F16 is preferred, which CPUs compute fastest."""
    try:
        files = [path for path in Path(model).parent.iterdir() if path.suffix.lower() == ".gguf"]
    except OSError:
        return ""
    found = sorted(
        (path for path in files if "mmproj" in path.name.lower()), key=lambda path: (_stem(path)[1] != "f16", path.name)
    )
    name = _stem(Path(model))[0]
    alone = {_stem(path)[0] for path in files if path not in found} <= {name}
    return next((str(path) for path in found if alone or _stem(path)[0] == name), "")


def _stem(path: Path) -> tuple[str, str]:
    """A file's name without what only says that it is a projector, or which part, and without its number format; that too."""
    name = re.sub(r"-\d{5}-of-\d{5}$", "", path.stem.lower())
    found = re.search(r"[-._]((?:iq|q|tq)\d\w*|b?f16|f32|mxfp4\w*)$", name)
    name = name[: found.start()] if found else name
    return re.sub(r"^[-._]+|[-._]+$", "", re.sub(r"[-._]?mmproj[-._]?", "", name)), found.group(1) if found else ""


@contextlib.contextmanager
def _opened(name: str, what: str = "model") -> Iterator[BinaryIO]:
    """A file that begins as a GGUF file does; what goes wrong with it is a `StartupError` in words."""
    try:
        if Path(name).is_dir():
            raise StartupError(f"{name} is a folder, not a file")
        with open(name, "rb") as file:
            problem = _wrong_start(file.read(12), os.fstat(file.fileno()).st_size)
            if problem:
                raise StartupError(f"{name} {problem}")
            yield file
    except FileNotFoundError as error:
        raise StartupError(f"there is no {what} file at {name}") from error
    except OSError as error:
        raise StartupError(f"{name} cannot be read: {error.strerror or error}") from error
    except struct.error as error:
        raise StartupError(f"{name} ends in the middle of its header: the download or copy was cut short") from error


def _wrong_start(start: bytes, size: int) -> str:
    if size == 0:
        return "is empty"
    if start[:4] != MAGIC:
        if start.startswith((b"version ", b"<!DO", b"<htm")):
            return "is not a GGUF file but a text that stands for one (a Git LFS pointer or a web page): download it again"
        if start[:4] in {b"ggml", b"lmgg", b"ggjt", b"tjgg", b"fmgg"}:
            return "is a model file from before GGUF: get or convert it as GGUF"
        if start[:2] == b"PK" or start[4:9] == b"\x00\x00\x00\x00{":
            return "is not a GGUF file (it may be a PyTorch or safetensors file): convert it to GGUF"
        return f"is not a GGUF file: it starts with {start[:4]!r} in place of {MAGIC!r}"
    if len(start) < 12:
        return "ends in the middle of its header: the download or copy was cut short"
    version = int.from_bytes(start[4:8], "little")
    if int.from_bytes(start[4:8], "big") in VERSIONS:
        return "is a big-endian GGUF file: get the little-endian one"
    if version not in VERSIONS:
        return f"has GGUF version {version}; puna knows {VERSIONS[0]} and {VERSIONS[-1]}"
    return ""


class _Reader:
    """Walks through the header's bytes."""

    def __init__(self, path: str, data: mmap.mmap) -> None:
        self._path = path
        self._data = data
        self._at = 4

    def header(self) -> Header:
        version = self._integer("I")
        n_tensors = self._count("tensors")
        n_entries = self._count("metadata entries")
        metadata: dict[str, Scalar] = {}
        lengths: dict[str, int] = {}
        kinds: dict[str, int] = {}
        for _ in range(n_entries):
            key = self._string()
            kind = kinds[key] = self._integer("I")
            if kind == ARRAY:
                lengths[key] = self._skip_list()
            else:
                metadata[key] = self._scalar(kind)
        sizes: Counter[str] = Counter()
        found = [self._tensor() for _ in range(n_tensors)]
        for tensor in found:
            sizes[tensor.type] += math.prod(tensor.shape)
        alignment = metadata.get("general.alignment", 32)
        step = alignment if isinstance(alignment, int) and alignment > 0 else 32
        start = -(-self._at // step) * step
        return Header(
            path=self._path,
            version=version,
            metadata=metadata,
            list_lengths=lengths,
            kinds=kinds,
            tensors={tensor.name: replace(tensor, start=start + tensor.start) for tensor in found},
            n_tensors=n_tensors,
            n_params=sizes.total(),
            quantisation=sizes.most_common(1)[0][0] if sizes else "",
            file_bytes=len(self._data),
            needed_bytes=start + max(tensor.start + tensor.n_bytes for tensor in found) if found else self._at,
        )

    def _tensor(self) -> Tensor:
        """One tensor, with its place after the start of the data."""
        name = self._string()
        n_dimensions = self._integer("I")
        if n_dimensions > MOST_DIMENSIONS:
            raise StartupError(f"{self._path} is damaged: tensor {name!r} claims to have {n_dimensions} dimensions")
        shape = tuple(self._integer("Q") for _ in range(n_dimensions))
        n_elements = math.prod(shape)
        kind, offset = self._integer("I"), self._integer("Q")
        if kind not in TENSOR_TYPES:
            return Tensor(name, shape, f"type {kind}", offset, 0)
        type_name, block, n_bytes = TENSOR_TYPES[kind]
        if n_elements % block:
            raise StartupError(f"{self._path} is damaged: tensor {name!r} has {n_elements} elements, no multiple of {block}")
        return Tensor(name, shape, type_name, offset, n_elements // block * n_bytes)

    def _scalar(self, kind: int) -> Scalar:
        if kind == STRING:
            return self._string()
        if kind not in SCALARS:
            raise StartupError(f"{self._path} is damaged: its metadata has a value of unknown type {kind}")
        form = "<" + SCALARS[kind]
        value: int | float | bool = struct.unpack_from(form, self._data, self._skip(struct.calcsize(form)))[0]
        return value

    def _skip_list(self, depth: int = 0) -> int:
        kind, length = self._integer("I"), self._integer("Q")
        if kind in SCALARS:
            self._skip(struct.calcsize("<" + SCALARS[kind]) * length)
        elif kind == STRING:
            for _ in range(length):
                self._skip(self._integer("Q"))
        elif kind == ARRAY and depth < DEEPEST_LIST:
            for _ in range(length):
                self._skip_list(depth + 1)
        else:
            raise StartupError(f"{self._path} is damaged: its metadata has a list of unknown type {kind}")
        return length

    def _string(self) -> str:
        length = self._integer("Q")
        start = self._skip(length)
        return self._data[start : start + length].decode("utf-8", "replace")

    def _count(self, what: str) -> int:
        number = self._integer("Q")
        if number > MOST_ENTRIES:
            raise StartupError(f"{self._path} is damaged: it claims to have {number} {what}")
        return number

    def _integer(self, form: str) -> int:
        value: int = struct.unpack_from("<" + form, self._data, self._skip(SIZES[form]))[0]
        return value

    def _skip(self, n_bytes: int) -> int:
        """Move on and return where it was. Raises `struct.error` at the file's end."""
        start = self._at
        if start + n_bytes > len(self._data):
            raise struct.error("the file ends here")
        self._at = start + n_bytes
        return start
