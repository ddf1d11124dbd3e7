"""Control vectors: a direction a layer, added to what the layer says."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from puna import gguf
from puna.errors import StartupError
from puna.gguf import Header, Tensor

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class ControlVector:
    """Directions for a range of layers."""

    directions: FloatArray
    """Shape: (layers of the model less the first one, width), layer 1 at index 0."""
    first: int
    """The first layer that is changed, at least 1."""
    last: int
    """The last one, it included."""

    @property
    def digest(self) -> bytes:
        """Equal for what changes a model equally."""
        return hashlib.blake2b(self.directions[self.first - 1 : self.last].tobytes(), digest_size=16).digest()


def read_control_vector(
    files: Iterable[tuple[str, float]], *, n_embd: int, n_layer: int, layers: tuple[int, int] = (0, 0)
) -> ControlVector:
    """The sum of all files' directions, each times its scale. A bound of `layers` below 1 is the model's own.

    Raises `StartupError` with path and reason for a file that is none, or not for a model of this size.
    """
    directions = np.zeros((max(0, n_layer - 1), n_embd), np.float32)
    for path, scale in files:
        header = gguf.read_header(path, what="control vector")
        if header.missing_bytes:
            raise _useless(path, f"{header.missing_bytes:,} of its {header.needed_bytes:,} bytes are missing")
        if not header.tensors:
            raise _useless(path, "it holds no tensors")
        with np.errstate(over="ignore", invalid="ignore"):
            for tensor in header.tensors.values():
                layer = _layer(header, tensor, n_embd, n_layer)
                directions[layer - 1] += np.float32(scale) * np.frombuffer(gguf.read_tensor(header, tensor), "<f4")
        if not np.isfinite(directions).all():
            raise _useless(path, f"not all of its numbers, times {scale:g}, are finite")
    first, last = layers
    if first >= n_layer:
        raise StartupError(f"control vectors are to begin at layer {first}, and the model's last one is {n_layer - 1}")
    last = n_layer - 1 if last <= 0 else min(last, n_layer - 1)
    return ControlVector(directions, max(1, first), last)


def _layer(header: Header, tensor: Tensor, n_embd: int, n_layer: int) -> int:
    found = re.fullmatch(r"direction\.(\d{1,6})", tensor.name)
    if not found:
        raise _useless(header.path, f"its tensor {tensor.name!r} is no direction of a layer")
    layer = int(found.group(1))
    if not 1 <= layer < n_layer:
        raise _useless(header.path, f"it has a direction for layer {layer}, and the model's layers are 1 to {n_layer - 1}")
    if tensor.type != "F32":
        raise _useless(header.path, f"its tensor {tensor.name!r} has the type {tensor.type}, not F32")
    if tensor.shape != (n_embd,):
        raise _useless(header.path, f"its tensor {tensor.name!r} has the shape {list(tensor.shape)}, the model's is [{n_embd}]")
    return layer


def _useless(path: str, reason: str) -> StartupError:
    return StartupError(f"cannot use the control vector {path}: {reason}")
