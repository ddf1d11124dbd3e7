"""Options of where prompts rest."""

from __future__ import annotations

from puna.settings.option import Option
from puna.settings.values import Integer, Number, Text

MIB = 1 << 20
CACHE = "Prompt cache"

CACHE_OPTIONS = (
    Option(
        flags=("--cache-ram", "-cram"),
        kind=Integer(-1, 1 << 30, metavar="MIB", unit=MIB, words={"auto": -1}),
        target="engine.cache_ram",
        variables=("LLAMA_ARG_CACHE_RAM",),
        group=CACHE,
        help="MiB of memory in which finished prompts rest; 0: none, -1: a share of the machine's memory",
    ),
    Option(
        flags=("--cache-dir",),
        kind=Text("DIR"),
        target="engine.cache_dir",
        group=CACHE,
        help="a folder for prompts that no longer fit in memory, and for all of them when the server stops",
    ),
    Option(
        flags=("--cache-disk",),
        kind=Integer(1, 1 << 30, metavar="MIB", unit=MIB),
        target="engine.cache_disk",
        group=CACHE,
        help="MiB that the files in --cache-dir may take together",
    ),
    Option(
        flags=("--slot-save-path",),
        kind=Text("DIR"),
        target="server.slot_save_path",
        variables=("LLAMA_ARG_SLOT_SAVE_PATH",),
        group=CACHE,
        help="the folder that POST /slots/{id} saves prompts to and restores them from; it has to exist",
    ),
    Option(
        flags=("--slot-prompt-similarity", "-sps"),
        kind=Number(0, 1, metavar="SHARE"),
        target="engine.slot_similarity",
        variables=("LLAMA_ARG_SLOT_PROMPT_SIMILARITY",),
        group=CACHE,
        help="how much of a prompt a slot must have held last to be preferred for it; 0: slots are taken in turn",
    ),
)
