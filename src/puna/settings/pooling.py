"""Options of making vectors and scores."""

from __future__ import annotations

from puna.settings.option import Option
from puna.settings.values import Integer, Switch, choice

POOLING = "Embeddings"

POOLING_OPTIONS = (
    Option(
        flags=("--embeddings", "--embedding"),
        kind=Switch(),
        target="engine.embeddings",
        variables=("LLAMA_ARG_EMBEDDINGS",),
        group=POOLING,
        help="make texts into vectors, beside generating where the model can; models that cannot do so without the flag",
    ),
    Option(
        flags=("--reranking", "--rerank"),
        kind=Switch(),
        target="engine.reranking",
        variables=("LLAMA_ARG_RERANKING",),
        group=POOLING,
        help="rank documents with the model's ranking head",
    ),
    Option(
        flags=("--pooling",),
        kind=choice("auto", "none", "mean", "cls", "last", "rank"),
        target="engine.pooling",
        variables=("LLAMA_ARG_POOLING",),
        group=POOLING,
        help="how the vectors of a text's tokens become one; none: each is kept; auto: as the model file says",
    ),
    Option(
        flags=("--attention",),
        kind=choice("auto", "causal", "non-causal"),
        target="engine.attention",
        group=POOLING,
        help="what a token sees of the others while texts are embedded; auto: as the model file says",
    ),
    Option(
        flags=("--embd-normalize",),
        kind=Integer(-1),
        target="server.embd_normalize",
        group=POOLING,
        help="scaling of embeddings: -1 none, 0 to a largest number of 32760, 1 taxicab, 2 euclidean, else this p-norm",
    ),
)
