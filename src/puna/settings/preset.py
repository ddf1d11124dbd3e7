"""Sets of values for kinds of machines. Whatever is set by any other means wins over them."""

from __future__ import annotations

from collections.abc import Mapping

from puna.settings.option import Option
from puna.settings.values import Value, choice

MIB = 1 << 20

PRESETS: Mapping[str, Mapping[str, Value]] = {
    "low-ram": {
        "engine.n_ctx": 2048,
        "engine.n_slots": 1,
        "engine.n_batch": 256,
        "engine.n_ubatch": 128,
        "engine.n_gpu_layers": 0,
        "engine.cache_ram": 64 * MIB,
    },
    "balanced": {
        "engine.n_ctx": 4096,
        "engine.n_slots": 4,
        "engine.n_batch": 512,
        "engine.n_ubatch": 512,
        "engine.cache_ram": 512 * MIB,
    },
    "gpu-max": {
        "engine.n_batch": 2048,
        "engine.n_ubatch": 2048,
        "engine.n_gpu_layers": -1,
        "engine.flash_attention": "on",
    },
}
"""Target to value, by the preset's name."""

PRESET_OPTIONS = (
    Option(
        flags=("--preset", "--mobile-preset"),
        kind=choice(*PRESETS),
        target="load.preset",
        variables=("PUNA_MOBILE_PRESET",),
        group="Model",
        help="low-ram: one request of 2,048 tokens and little cache; balanced: four of 4,096; gpu-max: all layers on an "
        "accelerator, large batches. Other settings win over these",
    ),
)
