"""What two controls cost: a large schema that is new to the server, and `deterministic`.

    python bench/controls.py http://127.0.0.1:8091 http://127.0.0.1:8080

Servers take turns, run by run. `deterministic` is puna's own, so only the last URL is asked for it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import time
from typing import Any

import httpx

PROMPT = "Fill in the form of a company that makes bicycles, with all its fields."


def large_schema(seed: int) -> dict[str, Any]:
    """30 properties and a list of 200 values to choose from; no other seed gives the same one."""
    rng = random.Random(seed)
    word = "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(6))
    kinds: list[dict[str, Any]] = [{"type": "string", "maxLength": 30}, {"type": "integer"}, {"type": "boolean"}]
    properties = {f"{word}_{i}": kinds[i % 3] for i in range(29)}
    properties[f"{word}_choice"] = {"enum": [f"{word} value {i} {rng.randrange(10**6)}" for i in range(200)]}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


async def first_token(client: httpx.AsyncClient, url: str, seed: int, schema: dict[str, Any] | None) -> float:
    """Seconds to the first token of an answer to a prompt that nobody has read before."""
    body: dict[str, Any] = {"messages": [{"role": "user", "content": f"{seed}. {PROMPT}"}], "stream": True, "max_tokens": 32}
    if schema is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "form", "schema": schema}}
    begin = time.perf_counter()
    async with client.stream("POST", f"{url}/v1/chat/completions", json=body) as reply:
        reply.raise_for_status()
        async for line in reply.aiter_lines():
            if line.startswith("data: {") and (choices := json.loads(line[6:])["choices"]) and choices[0]["delta"].get("content"):
                return time.perf_counter() - begin
    raise RuntimeError(f"{url} sent no text within 32 tokens")


async def rate(client: httpx.AsyncClient, url: str, n: int, *, deterministic: bool, tokens: int = 96) -> float:
    """Tokens a second of `n` requests at once."""
    bodies = [
        {"prompt": f"Chapter {random.random()}", "n_predict": tokens, "ignore_eos": True, "deterministic": deterministic}
        for _ in range(n)
    ]
    begin = time.perf_counter()
    for reply in await asyncio.gather(*(client.post(f"{url}/completion", json=body) for body in bodies)):
        reply.raise_for_status()
    return n * tokens / (time.perf_counter() - begin)


async def measure(urls: list[str], runs: int) -> None:
    waits: dict[str, list[tuple[float, float]]] = {url: [] for url in urls}
    rates: dict[tuple[int, bool], list[float]] = {(n, flag): [] for n in (1, 4) for flag in (False, True)}
    async with httpx.AsyncClient(timeout=600) as client:
        for url in urls:
            await first_token(client, url, 0, large_schema(0))  # what is made once, such as a tokenizer for grammars
        for run in range(runs):
            for url in urls:
                seed = random.randrange(10**9)
                plain = await first_token(client, url, seed, None)
                waits[url].append((plain, await first_token(client, url, seed + 1, large_schema(seed))))
            for (n, flag), found in rates.items():
                found.append(await rate(client, urls[-1], n, deterministic=flag))
            print(f"run {run + 1} of {runs}")
    for url, times in waits.items():
        free, formed = (statistics.median(column) * 1000 for column in zip(*times, strict=True))
        print(f"{url}: first token after {free:.0f} ms, {formed:.0f} ms with a large new schema (medians)")
    for n in (1, 4):
        plain_rate, own = statistics.median(rates[n, False]), statistics.median(rates[n, True])
        print(
            f"{n} requests at once: {plain_rate:.1f} tokens/s, deterministic {own:.1f}, {own / plain_rate:.2f} of that (medians)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("urls", nargs="+", help="a server's address; puna's comes last")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    asyncio.run(measure(arguments.urls, arguments.runs))


if __name__ == "__main__":
    main()
