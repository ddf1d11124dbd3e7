"""What changes a model for one context: LoRA adapters and a control vector."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from puna.errors import StartupError
from puna.llama import library
from puna.llama.control_vector import ControlVector
from puna.llama.library import C
from puna.llama.lora import Lora


class Adapted:
    """A `llama_context` that adapters can apply to. Base of those that own one."""

    _p: Any

    def __init__(self) -> None:
        self._adapters: tuple[tuple[Lora, float], ...] = ()

    def use_adapters(self, adapters: Sequence[tuple[Lora, float]]) -> None:
        """Let these adapters of the model apply, each with its scale, and no others, from the next decode on."""
        wanted = tuple(adapters)
        if wanted == self._adapters:
            return
        pointers = (C.llama_adapter_lora_p_ctypes * len(wanted))(*(lora.pointer for lora, _ in wanted))
        scales = (ctypes.c_float * len(wanted))(*(scale for _, scale in wanted))
        C.llama_set_adapters_lora(self._p, pointers, len(wanted), scales)
        self._adapters = wanted

    def use_control_vector(self, vector: ControlVector) -> None:
        """Let a control vector act from now on. Raises `StartupError` when the engine does not take it."""
        data = np.ascontiguousarray(vector.directions, np.float32)
        pointer = ctypes.cast(data.ctypes.data, ctypes.POINTER(ctypes.c_float))
        if C.llama_set_adapter_cvec(self._p, pointer, data.size, data.shape[1], vector.first, vector.last):
            raise StartupError(f"the engine does not take the control vector: {'; '.join(library.log.take_problems()[-2:])}")
