"""What a model file can be used for, told from its header."""

from __future__ import annotations

from puna.config import EngineSettings
from puna.gguf import Header
from puna.models.catalogue import Job

ENCODERS = frozenset([
    "bert", "nomic-bert", "nomic-bert-moe", "neo-bert", "modern-bert", "jina-bert-v2", "jina-bert-v3", "eurobert",
    "gemma-embedding",
])  # fmt: skip
"""Architectures that make vectors and no text."""

RANK = 4
"""GGUF's number for pooling into a score."""


def jobs(header: Header, engine: EngineSettings) -> frozenset[Job]:
    """What a model with these flags can do."""
    pooling = header.metadata.get(f"{header.architecture}.pooling_type")
    ranks = pooling == RANK or engine.reranking or engine.pooling == "rank"
    if ranks:
        return frozenset(["rerank"])
    if header.architecture in ENCODERS:
        return frozenset(["embedding"])
    found: set[Job] = {"text", "infill"}
    if engine.embeddings:
        found.add("embedding")
    return frozenset(found)
