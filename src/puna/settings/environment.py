"""Environment variables: `PUNA_*`, and `LLAMA_ARG_*` as llama.cpp's server has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from puna.settings.flags import Arguments, foreign_note, nearest
from puna.settings.foreign import FOREIGN, variable_flag
from puna.settings.option import Given, Option
from puna.settings.values import Switch

OWN = "PUNA_"
LLAMA = "LLAMA_ARG_"


def read(environment: Mapping[str, str], options: Iterable[Option]) -> Arguments:
    """The values that variables give. An empty variable counts as absent; puna's own name wins over llama.cpp's."""
    given: list[Given] = []
    known: set[str] = set()
    for option in options:
        names = [option.own_variable, *option.variables]
        refusals = [name.replace(LLAMA, LLAMA + "NO_") for name in option.variables] if isinstance(option.kind, Switch) else []
        known.update(names, refusals)
        found = next((name for name in names if environment.get(name, "").strip()), None)
        refused = next((name for name in refusals if name in environment), None)
        if found:
            given.append(Given(option, environment[found], found))
        elif refused:
            given.append(Given(option, "off", refused))
    return Arguments(tuple(given), tuple(_strangers(environment, known)))


def _strangers(environment: Mapping[str, str], known: set[str]) -> Iterable[str]:
    """A note for each variable of ours or llama.cpp's that is not known. Raises for one that must not be passed over."""
    for name in sorted(environment):
        if name in known or not name.startswith((OWN, LLAMA)) or not environment[name].strip():
            continue
        entry = FOREIGN.get(_flag(name))
        if name.startswith(LLAMA) and entry:
            asked_for = entry.values > 0 or environment[name].strip().lower() not in {"0", "off", "false", "disabled"}
            note = foreign_note(name, entry) if asked_for else ""
        else:
            note = f"{name} has no effect: there is no such variable{nearest(name, known)}"
        if note:
            yield note


def _flag(variable: str) -> str:
    flag = variable_flag(variable)
    return UNUSUAL.get(variable, flag)


UNUSUAL = {
    "LLAMA_ARG_EMBEDDINGS": "--embeddings",
    "LLAMA_ARG_ENDPOINT_PROPS": "--props",
    "LLAMA_ARG_STATIC_PATH": "--path",
    "LLAMA_ARG_SPEC_DRAFT_HF_REPO": "--hf-repo-draft",
    "LLAMA_ARG_NO_KV_OFFLOAD": "--no-kv-offload",
    "LLAMA_ARG_HF_TOKEN": "--hf-token",
}
"""Variables of llama.cpp whose name is not made from their flag."""
