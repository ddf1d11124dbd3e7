"""Options for what changes a model without being one: LoRA adapters and control vectors."""

from __future__ import annotations

from puna.settings.option import Option
from puna.settings.values import Files, Range, ScaledFiles, Switch

ADAPTERS = "Adapters"

ADAPTER_OPTIONS = (
    Option(
        flags=("--lora",),
        kind=Files(),
        target="engine.lora",
        group=ADAPTERS,
        help="a LoRA adapter; several with commas, or by repeating the flag. Their ids count from 0, in order",
    ),
    Option(
        flags=("--lora-scaled",),
        kind=ScaledFiles(),
        target="engine.lora",
        group=ADAPTERS,
        help="the same with a scale, as FILE:SCALE or FILE SCALE",
    ),
    Option(
        flags=("--lora-init-without-apply",),
        kind=Switch(),
        target="engine.lora_init_without_apply",
        group=ADAPTERS,
        help="begin with all adapters at scale 0, for requests or POST /lora-adapters to change",
    ),
    Option(
        flags=("--control-vector",),
        kind=Files(),
        target="engine.control_vectors",
        group=ADAPTERS,
        help="a control vector to add to what the layers say; several act together",
    ),
    Option(
        flags=("--control-vector-scaled",),
        kind=ScaledFiles(),
        target="engine.control_vectors",
        group=ADAPTERS,
        help="the same with a scale, as FILE:SCALE or FILE SCALE",
    ),
    Option(
        flags=("--control-vector-layer-range",),
        kind=Range(),
        target="engine.control_vector_layers",
        group=ADAPTERS,
        help="first and last layer that control vectors act on, as START:END or START END; 0 for the model's own",
    ),
)
