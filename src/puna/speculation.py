"""How tokens that may follow are guessed ahead, so that several are verified in one step, as plain values."""

from __future__ import annotations

from typing import Literal

import msgspec

SpecType = Literal["none", "ngram-simple", "ngram-map", "ngram-cache", "draft", "auto"]
"""Where drafts come from: nowhere; the text so far, searched or indexed; what requests have in common too; a smaller
model; the best there is."""

ALIASES: dict[str, SpecType] = {
    "ngram-map-k": "ngram-map",
    "ngram-map-k4v": "ngram-map",
    "ngram-mod": "ngram-cache",
    "draft-simple": "draft",
}
"""llama.cpp's names of what comes near to ours."""

TYPES: dict[str, SpecType] = {
    "none": "none",
    "auto": "auto",
    "ngram-simple": "ngram-simple",
    "ngram-map": "ngram-map",
    "ngram-cache": "ngram-cache",
    "draft": "draft",
    **ALIASES,
}
"""Every name that a kind of draft may be asked for with."""

RICHEST: tuple[SpecType, ...] = ("ngram-cache", "ngram-map", "ngram-simple")
"""N-grams, those that know most first."""

MOST_DRAFTED = 64
"""Longest draft there is, whatever a request allows."""


def parse_type(text: str) -> SpecType:
    """The kind that a name stands for, or that several between commas come to: with a model and n-grams `auto`, of n-grams
    those that know most.

    Raises `ValueError` for anything else.
    """
    kinds = set()
    for name in text.split(","):
        if (word := name.strip()) not in TYPES:
            raise ValueError(f"{word!r} is none of {', '.join(TYPES)}")
        kinds.add(TYPES[word])
    if len(kinds) == 1:
        return kinds.pop()
    if alone := kinds & {"none", "auto"}:
        raise ValueError(f"{min(alone)!r} cannot be combined with others")
    return "auto" if "draft" in kinds else next(kind for kind in RICHEST if kind in kinds)


class Speculation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a request wants of drafts. They change what an answer costs, never what it may be."""

    type: SpecType = "none"
    n_max: int = 16
    """Most tokens of a draft; 0 is off."""
    n_min: int = 0
    """Drafts of fewer tokens are not used."""
    p_min: float = 0.0
    """Least chance, as far as can be told, that a drafted token is right."""

    @property
    def on(self) -> bool:
        """Whether anything is to be drafted."""
        return self.type != "none" and self.n_max > 0

    @property
    def uses_ngrams(self) -> bool:
        """Whether what was read and written is looked at."""
        return self.type not in ("none", "draft")

    @property
    def uses_model(self) -> bool:
        """Whether a draft model is asked, if there is one."""
        return self.type in ("draft", "auto")
