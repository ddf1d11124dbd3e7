"""Whether two models speak in the same tokens, so that one can guess for the other. Pure."""

from __future__ import annotations

from typing import Protocol

MOST_SURPLUS = 128
"""Tokens that one vocabulary may have more: models of a family are filled up to different round numbers."""

FIRST_COMPARED = 5
"""The first token whose text counts: models of a family name the special ones before it differently."""

KINDS = {0: "none", 1: "SPM", 2: "BPE", 3: "WPM", 4: "UGM", 5: "RWKV", 6: "PLaMo2"}
"""Kinds of vocabularies by the engine's numbers."""


class Words(Protocol):
    """What is compared of a vocabulary."""

    n_tokens: int
    type: int
    add_bos: bool
    bos: int
    add_eos: bool
    eos: int

    def text(self, token: int, /) -> str:
        """The token's text."""


def difference(target: Words, draft: Words) -> str:
    """What keeps a draft model from guessing for a model, in words that end a sentence; empty if nothing does."""
    if target.type != draft.type:
        kinds = (KINDS.get(words.type, f"number {words.type}") for words in (target, draft))
        return "the model's vocabulary is of kind {}, the draft model's {}".format(*kinds)
    for what, ours, theirs in (
        ("begin", _around(target.add_bos, target.bos), _around(draft.add_bos, draft.bos)),
        ("end", _around(target.add_eos, target.eos), _around(draft.add_eos, draft.eos)),
    ):
        if ours != theirs:
            return f"the model's texts {what} with {ours}, the draft model's with {theirs}"
    if abs(target.n_tokens - draft.n_tokens) > MOST_SURPLUS:
        return f"the model knows {target.n_tokens} tokens, the draft model {draft.n_tokens}"
    for token in range(FIRST_COMPARED, min(target.n_tokens, draft.n_tokens)):
        if (ours := target.text(token)) != (theirs := draft.text(token)):
            return f"token {token} is {ours!r} for the model and {theirs!r} for the draft model"
    return ""


def _around(added: bool, token: int) -> str:
    return f"token {token}" if added else "no special token"
