"""`/metrics`: counters under llama.cpp's names, and histograms of our own. No label says anything about a user."""

from __future__ import annotations

import time
from collections.abc import Iterator

from fastapi import APIRouter
from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.responses import Response

from puna.errors import NotSupported
from puna.service.ports import Engine
from puna.service.service import Service
from puna.types import Timings

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
SECONDS_A_TOKEN = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2.5)
SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)


class Metrics:
    """Counts finished generations and reads the engine's own counters when asked."""

    def __init__(self, engine: Engine) -> None:
        self.began = time.time()
        self._registry = CollectorRegistry()
        self._registry.register(EngineCollector(engine))
        self._queue = self._histogram("queue_seconds", "Time from arrival to the first work on a request", SECONDS)
        self._first = self._histogram("time_to_first_token_seconds", "Time from admission to the first token", SECONDS)
        self._token = self._histogram("time_per_output_token_seconds", "Mean time of a token in a generation", SECONDS_A_TOKEN)
        self._cached = self._histogram("cached_ratio", "Share of a prompt that came from the cache", SHARES)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(f"puna:{name}", text, buckets=buckets, registry=self._registry)

    def finished(self, timings: Timings, first_token: float | None) -> None:
        """A generation ended by itself."""
        self._queue.observe(timings.queue_ms / 1000)
        if first_token is not None:
            self._first.observe(first_token)
        if timings.predicted_n > 0:
            self._token.observe(timings.predicted_ms / 1000 / timings.predicted_n)
        if (n_prompt := timings.cache_n + timings.prompt_n) > 0:
            self._cached.observe(timings.cache_n / n_prompt)

    def text(self) -> bytes:
        """Everything, in Prometheus' text format."""
        return generate_latest(self._registry)


class EngineCollector(Collector):
    """The engine's counters at the moment they are asked for. They start over when a worker is replaced."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def describe(self) -> Iterator[Metric]:
        """The same metrics; asked for once, to find clashes of names."""
        return self.collect()

    def collect(self) -> Iterator[Metric]:
        """One metric after another."""
        stats = self._engine.stats
        n_running = stats.n_running + stats.n_pooling
        prompt_tokens, prompt_ms = stats.prompt_tokens + stats.pooled_tokens, stats.prompt_ms + stats.pooled_ms
        counters = {
            "llamacpp:prompt_tokens": ("Tokens of prompts and other inputs that were read", prompt_tokens),
            "llamacpp:prompt_tokens_cached": ("Prompt tokens that came from the cache", stats.cache_tokens),
            "llamacpp:prompt_seconds": ("Time spent reading them", prompt_ms / 1000),
            "llamacpp:tokens_predicted": ("Tokens that were generated", stats.predicted_tokens),
            "llamacpp:tokens_predicted_seconds": ("Time spent generating", stats.predicted_ms / 1000),
            "llamacpp:n_decode": ("Calls of the engine's decode", stats.n_decode),
            "llamacpp:spec_decode_num_draft_tokens": ("Tokens that were drafted", sum(stats.drafted)),
            "llamacpp:spec_decode_num_accepted_tokens": ("Drafted tokens that turned out right", sum(stats.draft_accepted)),
            "llamacpp:spec_decode_num_drafts": ("Drafts that were verified", stats.drafted[0] if stats.drafted else 0),
            "puna:embedded_inputs": ("Inputs that were embedded or ranked", stats.pooled_inputs),
            "puna:embedded_tokens": ("Tokens of those inputs", stats.pooled_tokens),
            "puna:embedding_seconds": ("Time spent embedding and ranking", stats.pooled_ms / 1000),
            "puna:cache_hits": ("Requests that found a part of their prompt in the cache", stats.cache_hits),
            "puna:cache_copies": ("Those of them that were copied from a running request", stats.cache_copies),
            "puna:cache_moved_tokens": ("Prompt tokens that came from another place in a known prompt", stats.cache_moved),
            "puna:cache_checkpoints": ("States kept while prompts were read, by models that need it", stats.cache_checkpoints),
            "puna:cache_evictions": ("Ends of prompts that fell out of host memory", stats.cache_evictions),
            "puna:media_encoded": ("Pictures and sounds, or parts of them, that were encoded", stats.media_encoded),
            "puna:media_seconds": ("Time spent encoding them", stats.media_ms / 1000),
            "puna:media_hits": ("Times that an encoding was used again", stats.media_hits),
            "puna:disk_hits": ("Requests that found a part of their prompt on disk", stats.disk_hits),
            "puna:disk_writes": ("Prompts that were written to disk", stats.disk_writes),
            "puna:disk_evictions": ("Files that were deleted to make room", stats.disk_evictions),
            "puna:disk_bad": ("Files that were damaged, and deleted", stats.disk_bad),
            "puna:disk_lost": ("Prompts that could not be written to disk, or not in time", stats.disk_lost),
            "puna:engine_restarts": ("Workers that had to be replaced", self._engine.restarts),
        }
        for name, (text, value) in counters.items():
            yield CounterMetricFamily(name, text, value=value)
        for name, text, counts in (
            ("puna:drafted_tokens", "Tokens that were drafted, by their place in the draft", stats.drafted),
            (
                "puna:draft_accepted_tokens",
                "Drafted tokens that turned out right, by their place in the draft",
                stats.draft_accepted,
            ),
        ):
            family = CounterMetricFamily(name, text, labels=["position"])
            for place, count in enumerate(counts, 1):
                family.add_metric([str(place)], count)
            yield family
        gauges = {
            "llamacpp:prompt_tokens_seconds": ("Mean prompt tokens per second", _rate(prompt_tokens, prompt_ms)),
            "llamacpp:predicted_tokens_seconds": (
                "Mean generated tokens per second of one sequence",
                _rate(stats.predicted_tokens, stats.predicted_ms),
            ),
            "llamacpp:requests_processing": ("Requests that are being worked on", n_running),
            "llamacpp:requests_deferred": (
                "Requests that wait",
                max(stats.n_waiting, self._engine.in_flight - n_running, 0),
            ),
            "llamacpp:n_tokens_max": ("Most tokens that any sequence has held", stats.n_tokens_max),
            "llamacpp:n_busy_slots_per_decode": ("Mean sequences in a decode", stats.n_busy_slots / max(1, stats.n_decode)),
            "puna:cells_used": ("Tokens that running sequences hold", stats.cells_used),
            "puna:cache_bytes": ("Host memory that resting prompts take", stats.cache_bytes),
            "puna:cache_limit_bytes": ("Host memory that resting prompts may take", stats.cache_limit),
            "puna:media_bytes": ("Host memory that encoded pictures and sounds take", stats.media_bytes),
            "puna:media_limit_bytes": ("Host memory that they may take", stats.media_limit),
            "puna:cache_entries": ("Parts of prompts that rest in host memory", stats.cache_entries),
            "puna:disk_bytes": ("Bytes that this model's prompts take on disk", stats.disk_bytes),
            "puna:disk_entries": ("Prompts of this model that are on disk", stats.disk_entries),
        }
        for name, (text, value) in gauges.items():
            yield GaugeMetricFamily(name, text, value=value)


def _rate(n: int, ms: float) -> float:
    return 1000 * n / ms if ms > 0 else 0.0


def metrics_router(service: Service, metrics: Metrics) -> APIRouter:
    """The metrics route."""
    router = APIRouter(tags=["server"])

    @router.get("/metrics", response_model=None)
    async def read_metrics() -> Response:
        """Counters and histograms for Prometheus."""
        if not service.settings.metrics_endpoint:
            raise NotSupported("this server does not show its metrics; start it with --metrics")
        headers = {"process-start-time-unix": str(int(metrics.began))}
        return Response(metrics.text(), headers=headers, media_type=CONTENT_TYPE)

    return router
