"""What a worker counts, as plain values."""

from __future__ import annotations

import msgspec


class EngineStats(msgspec.Struct, frozen=True, kw_only=True):
    """Counters and gauges of one worker since its start."""

    n_running: int = 0
    n_waiting: int = 0
    cells_used: int = 0
    """Tokens that running sequences hold in the context."""
    cache_bytes: int = 0
    """Host memory that resting prompts take."""
    cache_limit: int = 0
    """What they may take at most."""
    cache_entries: int = 0
    """Ranges of tokens, or checkpoints, that can fall out one by one."""
    cache_hits: int = 0
    """Times that a part of a prompt was found in host memory or copied from a running request."""
    cache_copies: int = 0
    """Those of them that were copies."""
    cache_tokens: int = 0
    """Prompt tokens that did not have to be read again."""
    cache_moved: int = 0
    """Those of them that were moved from another place."""
    cache_checkpoints: int = 0
    """Checkpoints that were taken while prompts were read."""
    cache_evictions: int = 0
    disk_bytes: int = 0
    """What this model's files in the cache folder take."""
    disk_entries: int = 0
    disk_hits: int = 0
    """Requests that found a part of their prompt on disk."""
    disk_writes: int = 0
    disk_evictions: int = 0
    """Files that were deleted to make room."""
    disk_bad: int = 0
    """Files that were damaged, and deleted."""
    disk_lost: int = 0
    """Prompts that could not be written, or not as fast as they came."""
    n_decode: int = 0
    """Calls of the engine's decode."""
    n_busy_slots: int = 0
    """Sum over decode calls of the sequences that took part."""
    prompt_tokens: int = 0
    prompt_ms: float = 0.0
    predicted_tokens: int = 0
    predicted_ms: float = 0.0
    n_tokens_max: int = 0
    """Most tokens any sequence has held."""
    drafted: tuple[int, ...] = ()
    """Drafted tokens by their place in the draft."""
    draft_accepted: tuple[int, ...] = ()
    media_encoded: int = 0
    """Pictures and sounds, or parts of them, that were encoded."""
    media_ms: float = 0.0
    media_hits: int = 0
    """Times that what had been encoded before was used again."""
    media_bytes: int = 0
    """Host memory that encoded pictures and sounds take."""
    media_limit: int = 0
    n_pooling: int = 0
    """Requests whose inputs are being, or wait to be, embedded or ranked."""
    pooled_inputs: int = 0
    """Inputs that were embedded or ranked."""
    pooled_tokens: int = 0
    pooled_ms: float = 0.0
