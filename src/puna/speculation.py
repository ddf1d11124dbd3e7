"""How tokens that may follow are guessed ahead, so that several are verified in one step, as plain values."""

from __future__ import annotations

from typing import Literal

import msgspec

SpecType = Literal["none", "ngram-simple", "ngram-map", "ngram-cache", "auto"]
"""Where drafts come from: nowhere; the text so far, searched or indexed; what requests have in common too; the best there is."""

ALIASES: dict[str, SpecType] = {
    "ngram-map-k": "ngram-map",
    "ngram-map-k4v": "ngram-map",
    "ngram-mod": "ngram-cache",
}
"""llama.cpp's names of what comes near to ours."""

MOST_DRAFTED = 64
"""Longest draft there is, whatever a request allows."""


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
