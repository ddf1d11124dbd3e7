"""Options of pictures and sound."""

from __future__ import annotations

from puna.settings.cache import MIB
from puna.settings.option import Option
from puna.settings.values import Integer, Switch, Text

MEDIA = "Pictures and sound"

MEDIA_OPTIONS = (
    Option(
        flags=("--mmproj", "-mm"),
        kind=Text("FILE"),
        target="engine.mmproj",
        variables=("LLAMA_ARG_MMPROJ",),
        group=MEDIA,
        help="the projector with which the model takes pictures or sound; default: an mmproj*.gguf beside the model's file",
    ),
    Option(
        flags=("--mmproj-auto",),
        off_flags=("--no-mmproj", "--no-mmproj-auto"),
        kind=Switch(),
        target="engine.mmproj_auto",
        variables=("LLAMA_ARG_MMPROJ_AUTO",),
        group=MEDIA,
        help="use a projector that lies beside the model's file",
    ),
    Option(
        flags=("--mmproj-offload",),
        off_flags=("--no-mmproj-offload",),
        kind=Switch(),
        target="engine.mmproj_offload",
        variables=("LLAMA_ARG_MMPROJ_OFFLOAD",),
        group=MEDIA,
        help="compute the projector on an accelerator, where the engine was built for one",
    ),
    Option(
        flags=("--image-min-tokens",),
        kind=Integer(0, 1 << 20),
        target="engine.image_min_tokens",
        variables=("LLAMA_ARG_IMAGE_MIN_TOKENS",),
        group=MEDIA,
        help="fewest tokens that a picture is read as, for models that take any size; 0: the projector's own number",
    ),
    Option(
        flags=("--image-max-tokens",),
        kind=Integer(0, 1 << 20),
        target="engine.image_max_tokens",
        variables=("LLAMA_ARG_IMAGE_MAX_TOKENS",),
        group=MEDIA,
        help="most tokens that a picture is read as, for models that take any size; 0: the projector's own number",
    ),
    Option(
        flags=("--media-cache",),
        kind=Integer(-1, 1 << 30, metavar="MIB", unit=MIB, words={"auto": -1}),
        target="engine.media_cache",
        group=MEDIA,
        help="MiB of memory in which encoded pictures and sounds are kept; 0: none, -1: a share of the machine's memory",
    ),
)
