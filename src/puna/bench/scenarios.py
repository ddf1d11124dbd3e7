"""What is measured: one function a scenario, from a server and a seed to figures."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from puna.bench import prompts
from puna.bench.client import Target
from puna.bench.record import Record
from puna.bench.response import BrokenResponse
from puna.bench.schema import SCHEMA, is_valid
from puna.bench.stats import cached_share, of_streams, percentile

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
EMBEDDINGS, RERANK = "/v1/embeddings", "/v1/rerank"

SHORT, LONG, SYSTEM, PREFILL = 40, 1000, 1400, 2000
TEXT, DOCUMENT = 24, 40
"""Lengths of prompts in words, which are near to tokens."""

EDITED = 45
"""Lines of a file of about 600 tokens."""

PATIENCE = 60.0
"""Seconds within which all running streams must bring text."""

QUIET = 4.0
"""Seconds for which running streams are watched before they are disturbed."""

Seed = tuple[int | str, ...]


class Failed(Exception):
    """A run of a scenario brought no figures; says why."""


@dataclass(frozen=True)
class Scenario:
    """A scenario's name, what it is in words, and how it is run once."""

    name: str
    text: str
    run: Callable[[Target, Seed], Awaitable[dict[str, float]]]
    special: bool = False
    """Whether only some servers can do it, so that it is only run when it is asked for."""


async def together(target: Target, path: str, bodies: Sequence[Mapping[str, Any]]) -> list[Record]:
    """Send all requests at once and wait for all answers. Raises `Failed` if any of them failed."""
    records = await asyncio.gather(*(target.stream(path, body) for body in bodies))
    check(records)
    return records


def check(records: Sequence[Record]) -> None:
    """Raise `Failed` if any request failed."""
    errors = [record.error for record in records if record.error]
    if errors:
        raise Failed(f"{len(errors)} of {len(records)} requests failed: {errors[0]}")


def streams(n: int, n_words: int, max_tokens: int) -> Callable[[Target, Seed], Awaitable[dict[str, float]]]:
    """A scenario of `n` completions at once, each with its own prompt."""

    async def run(target: Target, seed: Seed) -> dict[str, float]:
        bodies = [prompts.completion(prompts.words(n_words, (*seed, index)), max_tokens) for index in range(n)]
        return of_streams(await together(target, COMPLETIONS, bodies))

    return run


async def context(target: Target, seed: Seed) -> dict[str, float]:
    """The same requests twice: cold, then with their prompts in the cache, which leaves the decoding."""
    bodies = [prompts.completion(prompts.words(LONG, (*seed, index)), 64) for index in range(16)]
    cold = of_streams(await together(target, COMPLETIONS, bodies))
    warm = of_streams(await together(target, COMPLETIONS, bodies))
    return {**warm, "cold_tokens_s": cold["tokens_s"], "cold_wall": cold["wall"]}


async def shared(target: Target, seed: Seed) -> dict[str, float]:
    """Clients whose system prompt is the same, and new to the server."""
    system = "Session " + prompts.words(SYSTEM, (*seed, "system"))
    asked = [f"{prompts.words(6, (*seed, index))}. {prompts.QUESTIONS[index % len(prompts.QUESTIONS)]}" for index in range(16)]
    bodies = [prompts.chat([("system", system), ("user", question)], 32) for question in asked]
    return of_streams(await together(target, CHAT, bodies))


async def prefill(target: Target, seed: Seed) -> dict[str, float]:
    """One long prompt, one token out."""
    record = await read_long_prompt(target, seed)
    return {"prompt_tokens_s": record.prompt_tokens / record.ttft, "ttft_p50": record.ttft * 1000,
            "prompt_tokens": float(record.prompt_tokens)}  # fmt: skip


async def read_long_prompt(target: Target, seed: Seed) -> Record:
    """Have a long prompt read. Raises `Failed` if it fails."""
    record = await target.stream(COMPLETIONS, prompts.completion(prompts.words(PREFILL, (*seed, "long")), 1))
    check([record])
    record.prompt_tokens = record.prompt_tokens or PREFILL
    return record


async def chats(target: Target, seed: Seed) -> dict[str, float]:
    """More chats than slots, one request at a time: each turn comes back after all other chats had theirs."""
    histories: list[list[tuple[str, str]]] = [[] for _ in range(24)]
    later: list[Record] = []
    begin = time.perf_counter()
    for turn in range(3):
        for index, history in enumerate(histories):
            history.append(("user", prompts.words(120 if turn == 0 else 12, (*seed, index, turn)) + "?"))
            record = await target.stream(CHAT, prompts.chat(history, 16))
            check([record])
            history.append(("assistant", record.text))
            later.extend([record] if turn else [])
    waits = [record.ttft * 1000 for record in later]
    figures = {"ttft_p50": percentile(waits, 0.5), "ttft_p99": percentile(waits, 0.99), "wall": time.perf_counter() - begin}
    cached = cached_share(later)
    return figures if cached is None else {**figures, "cached": cached}


async def constrained(target: Target, seed: Seed) -> dict[str, float]:
    """Objects of one schema, one after another, and free text of about their length beside them for comparison."""
    response_format = {"type": "json_schema", "json_schema": {"name": "product", "schema": SCHEMA, "strict": True}}
    bodies = [
        prompts.chat([("user", f"Describe product {prompts.words(3, (*seed, index))} as JSON.")], 200, ignore_eos=False)
        for index in range(8)
    ]
    begin = time.perf_counter()
    records = [await target.stream(CHAT, {**body, "response_format": response_format}) for body in bodies]
    wall = time.perf_counter() - begin
    check(records)
    if bad := [record.text for record in records if not is_valid(record.text)]:
        raise Failed(f"{len(bad)} of {len(records)} replies do not fit the schema, such as {bad[0][:80]!r}")
    free = [await target.stream(CHAT, {**body, "max_tokens": 64, "ignore_eos": True}) for body in bodies]
    check(free)
    tokens = sum(record.tokens for record in records)
    return {
        "objects_s": len(records) / wall,
        "tokens_s": tokens / wall,
        "free_tokens_s": sum(record.tokens for record in free) / sum(record.end - record.start for record in free),
        "output_tokens": tokens / len(records),
        "wall": wall,
    }


class Running:
    """Streams that go on in the background while something else is measured."""

    def __init__(self, target: Target, seed: Seed, n: int, max_tokens: int) -> None:
        self._records: list[Record] = []
        self._tasks = [asyncio.create_task(self._run(target, (*seed, "running", index), max_tokens)) for index in range(n)]

    async def _run(self, target: Target, seed: Seed, max_tokens: int) -> Record:
        known = False

        def note(record: Record) -> None:
            nonlocal known
            if not known and record.arrivals:
                known = True
                self._records.append(record)

        return await target.stream(COMPLETIONS, prompts.completion(prompts.words(SHORT, seed), max_tokens), note)

    async def wait_for_text(self, since: float, timeout: float) -> None:
        """Wait until every stream has brought text after `since`. Raises `Failed` if one ends before, or time runs out."""
        limit = time.perf_counter() + timeout
        while (n := sum(record.arrivals[-1] > since for record in self._records)) < len(self._tasks):
            self._must_run()
            if time.perf_counter() > limit:
                raise Failed(f"only {n} of {len(self._tasks)} streams brought text side by side within {timeout:.0f} s")
            await asyncio.sleep(0.05)
        self._must_run()

    def _must_run(self) -> None:
        for task in self._tasks:
            if task.done():
                raise Failed(f"a background stream ended early: {task.result().error or 'it had nothing more to say'}")

    def gap_p99(self, begin: float, end: float) -> float:
        """99th percentile of the gaps that share time with (begin, end), in milliseconds."""
        return percentile([gap for record in self._records for gap in record.gaps(begin, end)], 0.99) * 1000

    async def stop(self) -> None:
        """Hang up."""
        for task in self._tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*self._tasks, return_exceptions=True)


async def interference(target: Target, seed: Seed) -> dict[str, float]:
    """What a long prompt does to running streams, and they to it."""
    alone = await read_long_prompt(target, (*seed, "alone"))
    running = Running(target, seed, 4, 1500)
    try:
        await running.wait_for_text(0, PATIENCE)
        quiet_from = time.perf_counter()
        await asyncio.sleep(QUIET)
        quiet_to = time.perf_counter()
        await running.wait_for_text(quiet_to, PATIENCE)
        busy = await read_long_prompt(target, (*seed, "busy"))
        busy_to = busy.start + busy.ttft
        await running.wait_for_text(busy_to, PATIENCE)  # so that the gap that the prompt's end falls into is closed
        quiet, during = running.gap_p99(quiet_from, quiet_to), running.gap_p99(busy.start, busy_to)
    finally:
        await running.stop()
    return {
        "prompt_tokens_s": alone.prompt_tokens / alone.ttft,
        "busy_prompt_tokens_s": busy.prompt_tokens / busy.ttft,
        "slowdown": 100 * ((busy.ttft / busy.prompt_tokens) / (alone.ttft / alone.prompt_tokens) - 1),
        "quiet_gap_p99": quiet,
        "busy_gap_p99": during,
        "gap_growth": during / quiet,
    }


async def asked(target: Target, path: str, body: Mapping[str, Any]) -> tuple[float, Any]:
    """A reply, and the seconds that it took. Raises `Failed` if there is none."""
    try:
        return await target.ask(path, body)
    except BrokenResponse as error:
        raise Failed(f"{path}: {error}") from error


async def embeddings(target: Target, seed: Seed) -> dict[str, float]:
    """Texts from clients that send one after another, then as many others, all that a client has in one request."""
    texts = [[prompts.words(TEXT, (*seed, client, index)) for index in range(8)] for client in range(8)]
    waits: list[float] = []

    async def one_by_one(own: Sequence[str]) -> None:
        for text in own:
            seconds, reply = await asked(target, EMBEDDINGS, {"input": text})
            check_vectors(reply, 1)
            waits.append(1000 * seconds)

    begin = time.perf_counter()
    await asyncio.gather(*map(one_by_one, texts))
    wall = time.perf_counter() - begin
    others = [[prompts.words(TEXT, (*seed, "list", client, index)) for index in range(8)] for client in range(8)]
    begin = time.perf_counter()
    replies = await asyncio.gather(*(asked(target, EMBEDDINGS, {"input": own}) for own in others))
    listed = time.perf_counter() - begin
    for _, reply in replies:
        check_vectors(reply, 8)
    return {
        "texts_s": 64 / wall,
        "listed_texts_s": 64 / listed,
        "reply_p50": percentile(waits, 0.5),
        "reply_p99": percentile(waits, 0.99),
        "wall": wall,
    }


def check_vectors(reply: Any, n: int) -> None:
    """Raise `Failed` unless a reply has so many vectors, of numbers that are not all the same."""
    try:
        vectors = [item["embedding"] for item in reply["data"]]
        good = len(vectors) == n and all(len(set(vector)) > 1 for vector in vectors)
    except (LookupError, TypeError):
        good = False
    if not good:
        raise Failed(f"{EMBEDDINGS}: there are no {n} vectors in the reply")


async def rerank(target: Target, seed: Seed) -> dict[str, float]:
    """Many documents for one query."""
    documents = [prompts.words(DOCUMENT, (*seed, index)) for index in range(100)]
    seconds, reply = await asked(target, RERANK, {"query": prompts.words(8, (*seed, "query")), "documents": documents})
    try:
        found = sorted(result["index"] for result in reply["results"])
    except (LookupError, TypeError):
        found = []
    if found != list(range(100)):
        raise Failed(f"{RERANK}: not every document has a score")
    return {"documents_s": 100 / seconds, "wall": seconds}


async def drafts(target: Target, seed: Seed) -> dict[str, float]:
    """One stream that repeats a file with changes, then free text, each without and with drafts, prompts from the cache.

    Servers that do not know the field give the same figure twice.
    """
    figures: dict[str, float] = {}
    tasks = {"edit": (prompts.edit(EDITED, seed), 400), "free": (prompts.words(SHORT, (*seed, "free")), 160)}
    for name, (prompt, n) in tasks.items():
        body = prompts.completion(prompt, n)
        check([await target.stream(COMPLETIONS, {**body, "max_tokens": 1})])
        for kind, prefix in (("none", "plain_"), ("auto", "drafted_")):
            record = await target.stream(COMPLETIONS, {**body, "speculative.type": kind})
            check([record])
            figures[f"{prefix}{name}_tokens_s"] = record.tokens / (record.end - record.start)
        figures[f"{name}_gain"] = figures[f"drafted_{name}_tokens_s"] / figures[f"plain_{name}_tokens_s"]
    return figures


SCENARIOS = (
    Scenario("one", "one stream, 40 tokens in, 128 out", streams(1, SHORT, 128)),
    Scenario("streams8", "8 streams, 40 tokens in, 128 out", streams(8, SHORT, 128)),
    Scenario("streams16", "16 streams, 40 tokens in, 128 out", streams(16, SHORT, 128)),
    Scenario("context16", "16 streams, 1,000 tokens in, 64 out; cold, then with cached prompts", context),
    Scenario("shared16", "16 clients, one new system prompt of 1,400 tokens, 32 out", shared),
    Scenario("prefill", "2,000 tokens in, 1 out", prefill),
    Scenario("interference", "4 running streams while 2,000 tokens are read", interference),
    Scenario("schema", "8 objects of a schema in turn, then free text", constrained),
    Scenario("drafts", "a file of 600 tokens again with changes, and free text; without and with drafts", drafts),
    Scenario("chats24", "24 chats in turn, 3 turns each; figures of turns 2 and 3", chats),
    Scenario("embeddings", "64 texts of 24 words from 8 clients, one by one, then in lists", embeddings, special=True),
    Scenario("rerank", "100 documents of 40 words for one query", rerank, special=True),
)
