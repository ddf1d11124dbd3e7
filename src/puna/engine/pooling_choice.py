"""Whether and how a model's inputs become vectors. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import get_args

from puna.config import EngineSettings
from puna.engine.sizing import FIRST_N_CTX
from puna.pooling import Pooling

BY_NUMBER: dict[str, Pooling] = {str(number): name for number, name in enumerate(get_args(Pooling))}
"""As model files have it."""

PAIR_HEADS = frozenset({"qwen3", "qwen3vl"})
"""Architectures whose ranking head has two outputs, yes and no, of which the engine makes probabilities."""

PACK = 512
"""Tokens of a batch of several inputs, unless the settings want smaller ones."""


MOST_INPUTS = 64
"""Most inputs in a batch, where the model sets no bound."""


@dataclass(frozen=True, slots=True)
class PoolingSize:
    """Lengths in tokens."""

    pack: int
    """What a lane computes of several inputs together."""
    first: int
    """What it has room for at first: as much as a pack, or more."""
    limit: int
    """The longest input."""
    n_inputs: int = MOST_INPUTS
    """Most inputs of a lane."""

    def next_length(self, needed: int) -> int:
        """The length of a context in which `needed` tokens fit."""
        length = self.first
        while length < needed:
            length *= 2
        return max(self.first, min(length, self.limit))


@dataclass(frozen=True, slots=True)
class PoolingChoice:
    """What is made of inputs."""

    pooling: Pooling | None
    reason: str = ""
    """Why nothing is, where it was asked for."""


def choose_pooling(
    settings: EngineSettings, metadata: Mapping[str, str], tensors: Collection[str], *, n_labels: int, generates: bool
) -> PoolingChoice:
    """How inputs become vectors: as the user says, else as the model file does, else by the last token of a text where
    that has seen all others, and by the mean where every token has.

    `metadata` and `tensors` are the file's; `n_labels` counts the outputs of a classification head.
    """
    arch = metadata.get("general.architecture", "")
    told = BY_NUMBER.get(metadata.get(f"{arch}.pooling_type", ""))
    wanted = settings.embeddings or settings.reranking
    if generates and not wanted:
        return PoolingChoice(None)
    pooling: Pooling
    if settings.reranking:
        pooling = "rank"
    elif settings.pooling != "auto":
        pooling = settings.pooling
    else:
        pooling = told or ("last" if generates else "mean")
    if pooling != "rank":
        return PoolingChoice(pooling)
    if not (told == "rank" or has_head(arch, tensors)):
        return PoolingChoice(None, "this model has no ranking head: it cannot rank; --reranking needs a reranker's file")
    if n_labels != (2 if arch in PAIR_HEADS else 1):
        return PoolingChoice(None, f"this model sorts texts into {n_labels} classes; that is no score to rank by")
    return PoolingChoice("rank")


def has_head(arch: str, tensors: Collection[str]) -> bool:
    """Whether the file has what makes a score of a vector."""
    return "cls.output.weight" in tensors or (arch == "jina-bert-v2" and "cls.weight" in tensors)


def longest_input(settings: EngineSettings, *, n_ctx_train: int, generates: bool) -> int:
    """Most tokens of one input.

    An encoder may have a table with a row for each position, beyond which there is nothing, so it keeps to what it was
    trained for unless its positions are stretched.
    """
    trained = n_ctx_train or FIRST_N_CTX
    if not settings.n_ctx:
        return trained
    stretched = settings.rope_scaling != "auto" or settings.rope_freq_scale > 0
    return settings.n_ctx if generates or stretched else min(settings.n_ctx, trained)
