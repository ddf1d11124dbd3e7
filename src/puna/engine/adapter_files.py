"""From the adapters that the settings name to what the engine works with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from puna import gguf
from puna.config import EngineSettings
from puna.engine.adapters import Adapter, Adapters
from puna.errors import StartupError
from puna.gguf import Tensor
from puna.llama.batch import Batch
from puna.llama.context import Context
from puna.llama.control_vector import ControlVector, read_control_vector
from puna.llama.lora import Lora, check_lora
from puna.llama.model import Model
from puna.types import AdapterFacts


def check_adapters(settings: EngineSettings) -> None:
    """Look at the files, which is much faster than loading the model first. Raises `StartupError` for one that is wrong."""
    if not settings.lora:
        return
    header = gguf.read_header(settings.model)
    count = header.metadata.get("split.count", 0)
    tensors: dict[str, Tensor] = dict(header.tensors)
    for part in gguf.parts(settings.model, count if isinstance(count, int) else 0):
        tensors |= gguf.read_header(part).tensors
    for file in settings.lora:
        check_lora(file.path, tensors, header.architecture)


def load_control_vector(settings: EngineSettings, model: Model) -> ControlVector | None:
    """What all control vectors together do to a model. Raises `StartupError` for a file that does not fit it."""
    if not settings.control_vectors:
        return None
    files = [(file.path, file.scale) for file in settings.control_vectors]
    return read_control_vector(files, n_embd=model.n_embd, n_layer=model.n_layer, layers=settings.control_vector_layers)


def initial_scales(settings: EngineSettings) -> list[float]:
    """How strongly each adapter counts for requests that name none."""
    return [0.0 if settings.lora_init_without_apply else file.scale for file in settings.lora]


def check_numbers(context: Context, adapters: Sequence[tuple[Lora, float]], vector: ControlVector | None) -> None:
    """Compute a token with all that applies by itself. Raises `StartupError` when the result is beyond all bounds."""
    if not adapters and vector is None:
        return
    batch = Batch(2)
    batch.add([0, 0], 0, 0, n_logits=1)
    context.use_adapters(adapters)
    context.decode(batch)
    finite = bool(np.isfinite(context.logits(1)).all())
    context.use_adapters([])
    context.clear()
    if not finite:
        raise StartupError("with these adapters the model's numbers grow beyond all bounds; give them smaller scales")


def known_adapters(loras: Sequence[Lora], vector: ControlVector | None) -> Adapters:
    """What requests can choose from, and what applies to all."""
    return Adapters(tuple(Adapter(lora.digest, lora.invocation) for lora in loras), b"" if vector is None else vector.digest)


def adapter_facts(loras: Sequence[Lora], scales: Sequence[float]) -> tuple[AdapterFacts, ...]:
    """What the outside is told of the adapters."""
    return tuple(
        AdapterFacts(
            path=lora.path,
            scale=scale,
            task_name=lora.task_name,
            prompt_prefix=lora.prompt_prefix,
            invocation=lora.invocation,
        )
        for lora, scale in zip(loras, scales, strict=True)
    )
