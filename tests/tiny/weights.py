"""Random tensors on their way into a GGUF file."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter
from numpy.typing import NDArray

FileType = Literal["f32", "f16"]


class WeightFile:
    """A GGUF file being written, with its own random numbers: the same seed gives the same bytes."""

    def __init__(self, path: Path, arch: str, *, seed: int, file_type: FileType = "f32") -> None:
        self.path = path
        self.file_type = file_type
        self.writer = GGUFWriter(path, arch)
        self._random = np.random.default_rng(seed)

    def matrix(self, name: str, n_in: int, n_out: int, *, gain: float = 1.0) -> None:
        """A `n_out` by `n_in` matrix that multiplies the size of its input by about `gain`."""
        self._half(name, self._normal((n_out, n_in), gain / n_in**0.5))

    def table(self, name: str, n_rows: int, n_columns: int, *, size: float = 1.0) -> None:
        """A look-up table whose entries have a standard deviation of `size`."""
        self._half(name, self._normal((n_rows, n_columns), size))

    def vector(self, name: str, n: int, *, mean: float = 0.0, size: float = 0.1) -> None:
        """A norm's weights or a bias; always f32, as the engine wants them."""
        self.exact(name, mean + self._normal((n,), size))

    def both_ends(self, n_words: int, n_embd: int, *, gain: float, norm: str = "output_norm") -> None:
        """What comes before a decoder's layers and after them; `gain` is that of the logits."""
        self.table("token_embd.weight", n_words, n_embd)
        self.vector(f"{norm}.weight", n_embd, mean=1.0)
        self.matrix("output.weight", n_embd, n_words, gain=gain)

    def normal(self, name: str, shape: tuple[int, ...], *, size: float) -> None:
        """A tensor that must be f32 whatever the file's type."""
        self.exact(name, self._normal(shape, size))

    def exact(self, name: str, values: NDArray[np.float32]) -> None:
        """Values as given, f32."""
        self.writer.add_tensor(name, np.ascontiguousarray(values, dtype=np.float32))

    def finish(self) -> Path:
        """Write everything and close the file."""
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()
        return self.path

    def _normal(self, shape: tuple[int, ...], size: float) -> NDArray[np.float32]:
        return self._random.standard_normal(shape, dtype=np.float32) * np.float32(size)

    def _half(self, name: str, values: NDArray[np.float32]) -> None:
        if self.file_type == "f16":
            self.writer.add_tensor(name, values.astype(np.float16), raw_dtype=GGMLQuantizationType.F16)
        else:
            self.exact(name, values)
