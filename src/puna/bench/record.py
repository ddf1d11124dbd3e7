"""What one request brought, and how its events are understood."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec


@dataclass
class Record:
    """One streamed answer. Times are seconds of one monotonic clock."""

    start: float = 0.0
    end: float = 0.0
    arrivals: list[float] = field(default_factory=list)
    """When each piece of text came."""
    text: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    """As the server counted them; 0 if it did not."""
    cached_tokens: int | None = None
    """Prompt tokens that were not read again; None if the server does not say."""
    error: str = ""

    @property
    def tokens(self) -> int:
        """Tokens produced: the server's count, else one for each piece."""
        return self.completion_tokens or len(self.arrivals)

    @property
    def ttft(self) -> float:
        """Seconds until the first text, or until the end where none came."""
        return (self.arrivals[0] if self.arrivals else self.end) - self.start

    def gaps(self, begin: float = 0.0, end: float = float("inf")) -> list[float]:
        """Seconds between neighbouring pieces, for all gaps that share time with (begin, end)."""
        pairs = zip(self.arrivals, self.arrivals[1:], strict=False)
        return [later - earlier for earlier, later in pairs if later > begin and earlier < end]

    def take(self, event: str, now: float) -> bool:
        """Note one event's data; False when it is the last."""
        if event == "[DONE]":
            return False
        try:
            frame = msgspec.json.decode(event)
        except msgspec.DecodeError:
            self.error = f"not JSON: {event[:100]!r}"
            return False
        if not isinstance(frame, dict):
            return True
        if "error" in frame:
            self.error = error_text(frame)
            return False
        self._take_text(frame, now)
        self._take_counts(frame)
        return True

    def _take_text(self, frame: dict[str, Any], now: float) -> None:
        for choice in frame.get("choices") or ():
            text = choice.get("text") or (choice.get("delta") or {}).get("content") or ""
            if text:
                self.arrivals.append(now)
                self.text += text

    def _take_counts(self, frame: dict[str, Any]) -> None:
        """Counts may come as OpenAI's usage, or as the `timings` that llama.cpp adds."""
        usage = frame.get("usage")
        if isinstance(usage, dict):
            self.prompt_tokens = int(usage.get("prompt_tokens") or 0)
            self.completion_tokens = int(usage.get("completion_tokens") or 0)
            cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
            self.cached_tokens = int(cached) if cached is not None else self.cached_tokens
        timings = frame.get("timings")
        if isinstance(timings, dict):
            cached = timings.get("cache_n")
            if self.cached_tokens is None and cached is not None:
                self.cached_tokens = int(cached)
            self.completion_tokens = self.completion_tokens or int(timings.get("predicted_n") or 0)
            self.prompt_tokens = self.prompt_tokens or int(timings.get("prompt_n") or 0) + int(cached or 0)


def error_text(body: Any) -> str:
    """What an error body says, whatever its shape."""
    error = body.get("error", body) if isinstance(body, dict) else body
    message = error.get("message", error) if isinstance(error, dict) else error
    return str(message)[:200]
