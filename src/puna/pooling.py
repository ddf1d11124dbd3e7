"""How inputs become vectors, as plain values."""

from __future__ import annotations

from typing import Literal

import msgspec

Pooling = Literal["none", "mean", "cls", "last", "rank"]
"""How the vectors of an input's tokens become one: not at all, their mean, the first, the last, or a score by a ranking head."""


class PoolingFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a model that makes vectors, or scores."""

    pooling: Pooling | None = None
    """How inputs are embedded or ranked; None where they are not."""
    why_no_vectors: str = ""
    """Why there is no `pooling`, where it was asked for."""
    n_embd_out: int = 0
    """Numbers in an embedding; with `rank`, in a score."""
    n_ctx_pooled: int = 0
    """Most tokens of one input to embed or to rank."""
    rerank_template: str | None = None
    """The model's own text around a pair to rank, with `{query}` and `{document}` in it."""
    pair_begin: tuple[int, ...] = ()
    """Without such a text: the token ids before the query, then those between the two, then those after the document."""
    pair_middle: tuple[int, ...] = ()
    pair_end: tuple[int, ...] = ()

    @property
    def embeds(self) -> bool:
        """Whether texts can be made into vectors."""
        return self.pooling is not None and self.pooling != "rank"

    @property
    def ranks(self) -> bool:
        """Whether pairs of texts can be scored."""
        return self.pooling == "rank"
