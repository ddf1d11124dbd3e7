"""What a model file can be used for, told from its header."""

from __future__ import annotations

from puna.config import EngineSettings
from puna.errors import StartupError
from puna.gguf import Header, read_header
from puna.log import logger
from puna.models.catalogue import Job

ENCODERS = frozenset([
    "bert", "nomic-bert", "nomic-bert-moe", "neo-bert", "modern-bert", "jina-bert-v2", "jina-bert-v3", "eurobert",
    "gemma-embedding",
])  # fmt: skip
"""Architectures that make vectors and no text."""

RANK = 4
"""GGUF's number for pooling into a score."""


def jobs(header: Header, engine: EngineSettings, projector: str = "") -> frozenset[Job]:
    """What a model with these flags can do; `projector` is the path of its projector, if it has one."""
    pooling = header.metadata.get(f"{header.architecture}.pooling_type")
    ranks = pooling == RANK or engine.reranking or engine.pooling == "rank"
    if ranks:
        return frozenset(["rerank"])
    if header.architecture in ENCODERS:
        return frozenset(["embedding"])
    found: set[Job] = {"text", "infill"}
    if engine.embeddings:
        found.add("embedding")
    if projector and hears(projector):
        found.add("speech")
    return frozenset(found)


def hears(projector: str) -> bool:
    """Whether a projector takes sound. One that cannot be read takes none, with a word in the log: the model is not loaded yet,
    and may never be."""
    try:
        return read_header(projector, what="projector").metadata.get("clip.has_audio_encoder") is True
    except StartupError as error:
        logger.warning("%s", error.message)
        return False
