"""Thousands of requests of random chats under eviction: no token from another chat, and no memory that grows.

    PYTHONPATH=src:. python bench/soak.py                                  # 5,000 requests to a tiny model with random weights
    PYTHONPATH=src:. python bench/soak.py --kind rwkv7 --requests 1000
    PYTHONPATH=src:. python bench/soak.py --model SmolLM2.gguf --noise 3 --requests 300

One server has little room for prompts in memory and on disk; clients go on with chats at random, cut them, leave in the middle. A
second server without any cache evaluates what the first one answered: each greedy token has to be within `--noise`
(log-probability) of the best. Every chat has a code word, and no answer may hold that of another chat.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests import tiny
from tests.e2e.dialects import forced
from tests.e2e.server import Server, resident_bytes

KINDS = {
    "llama": tiny.write_llama,
    "gemma3": tiny.write_gemma3,
    "mamba": tiny.write_mamba,
    "rwkv6": tiny.write_rwkv6,
    "rwkv7": tiny.write_rwkv7,
    "jamba": tiny.write_jamba,
    "granite_hybrid": tiny.write_granite_hybrid,
    "lfm2": tiny.write_lfm2,
}
WEIGHTS = {"chat": 30, "tokens": 40, "choices": 8, "forced": 8, "warm": 7, "leave": 7}
"""How often each kind of request comes."""

SYSTEMS = tuple(f"You are assistant {n}, and what you say is said in the words of people number {n}. " * 2 for n in range(4))
QUESTIONS = ("What is the code word?", "How many of them are there?", "Go on.", "Say the name of the water.", "Who was first?")
LONGEST = 700
"""Tokens after which a chat is given up."""

REST = 7.0
"""Seconds that a server gets to give back what it does not need before its memory is looked at."""


@dataclass
class Chat:
    """A conversation between one client and the model."""

    word: str
    messages: list[dict[str, str]]
    tokens: list[int] = field(default_factory=list)
    """The same as the tokens of requests that bring tokens."""


@dataclass
class Findings:
    """What was seen so far."""

    kinds: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    n_checked: int = 0
    """Tokens that were evaluated again."""
    worst: float = 0.0
    """How far one of them was behind the best."""
    n_behind: int = 0
    """Those that were not the best."""
    cached: int = 0
    read: int = 0


class Soak:
    """Clients of a server, and a judge."""

    def __init__(self, server: Server, judge: Server, *, noise: float, seed: int, n_predict: int) -> None:
        self.findings = Findings()
        self._server = server
        self._judge = judge
        self._noise = noise
        self._n_predict = n_predict
        self._dice = random.Random(seed)
        self._lock = threading.Lock()
        self._chats: list[Chat] = []
        self._words: set[str] = set()
        self._local = threading.local()

    def one(self, _: int) -> None:
        """One request, and what it has to satisfy."""
        with self._lock:
            dice = random.Random(self._dice.random())
            kind = dice.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
            chat = self._take(dice)
            self.findings.kinds[kind] += 1
        try:
            getattr(self, f"_{kind}")(chat, dice)
        except (httpx.HTTPError, KeyError, ValueError, AssertionError) as error:
            self._fault(f"{kind}: {type(error).__name__}: {str(error)[:300]}")
        with self._lock:
            if len(chat.tokens) < LONGEST and sum(len(one["content"]) for one in chat.messages) < 2 * LONGEST:
                self._chats.append(chat)
            if len(self._chats) > 60:
                del self._chats[dice.randrange(len(self._chats))]

    def _take(self, dice: random.Random) -> Chat:
        if self._chats and dice.random() < 0.8:
            return self._chats.pop(dice.randrange(len(self._chats)))
        word = "".join(dice.choice("BCDFGHKLMNPRSTVWXZ") for _ in range(6))
        self._words.add(word)
        return Chat(word, [{"role": "system", "content": dice.choice(SYSTEMS)}])

    # kinds of requests

    def _chat(self, chat: Chat, dice: random.Random, **more: Any) -> None:
        self._ask(chat, dice)
        body = {"messages": chat.messages, "max_tokens": self._n_predict, "temperature": 0, "return_tokens": True, **more}
        reply = self._post(self._server, "/v1/chat/completions", body)
        for choice in reply["choices"]:
            text = choice["message"]["content"] or ""
            self._check_words(chat, text)
            if body["temperature"] == 0:
                self._check_tokens(self._prompt_tokens(chat.messages), choice["tokens"])
        chat.messages.append({"role": "assistant", "content": text.replace("\ufffd", "")})

    def _choices(self, chat: Chat, dice: random.Random) -> None:
        self._chat(chat, dice, n=2)

    def _warm(self, chat: Chat, dice: random.Random) -> None:
        self._chat(chat, dice, temperature=1.0, seed=dice.randrange(1 << 30))

    def _forced(self, chat: Chat, dice: random.Random) -> None:
        self._ask(chat, dice)
        text = f"The code word is {chat.word}. {dice.randrange(1000)} 😀"
        reply = self._post(self._server, "/v1/chat/completions", {"messages": chat.messages, "grammar": forced(text)})
        said = reply["choices"][0]["message"]["content"]
        if said != text:
            self._fault(f"forced to say {text!r} it said {said!r}")
        chat.messages.append({"role": "assistant", "content": text})

    def _tokens(self, chat: Chat, dice: random.Random) -> None:
        if not chat.tokens:
            self._ask(chat, dice)
            chat.tokens = self._prompt_tokens(chat.messages)
        elif dice.random() < 0.2:
            del chat.tokens[dice.randrange(len(chat.tokens) // 2, len(chat.tokens)) :]
        more = [dice.choice(chat.tokens) for _ in range(dice.randint(1, 40))]
        prompt = [*chat.tokens, *more]
        body = {"prompt": prompt, "n_predict": dice.randint(1, self._n_predict), "temperature": 0, "return_tokens": True}
        body["cache_prompt"] = dice.random() < 0.9
        if dice.random() < 0.2:
            body["id_slot"] = dice.randrange(4)
        reply = self._post(self._server, "/completion", body)
        self._check_words(chat, reply["content"])
        self._check_tokens(prompt, reply["tokens"])
        chat.tokens = [*prompt, *reply["tokens"]]
        with self._lock:
            self.findings.cached += reply["timings"]["cache_n"]
            self.findings.read += reply["timings"]["prompt_n"]

    def _leave(self, chat: Chat, dice: random.Random) -> None:
        self._ask(chat, dice)
        body = {"messages": chat.messages, "max_tokens": 200, "temperature": 0, "ignore_eos": True, "stream": True}
        with self._client(self._server).stream("POST", "/v1/chat/completions", json=body) as reply:
            lines = reply.iter_lines()
            for _ in range(dice.randrange(12)):
                next(lines, None)
        chat.messages.pop()

    def _ask(self, chat: Chat, dice: random.Random) -> None:
        if chat.messages[-1]["role"] == "user":
            chat.messages.pop()
        question = dice.choice(QUESTIONS)
        if len(chat.messages) == 1:
            question = f"The code word is {chat.word}. Remember it. {question}"
        chat.messages.append({"role": "user", "content": question})

    # judging

    def _prompt_tokens(self, messages: list[dict[str, str]]) -> list[int]:
        prompt = self._post(self._judge, "/apply-template", {"messages": messages})["prompt"]
        found: list[int] = self._post(self._judge, "/tokenize", {"content": prompt, "add_special": True, "parse_special": True})[
            "tokens"
        ]
        return found

    def _check_tokens(self, prompt: Sequence[int], answer: Sequence[int]) -> None:
        if not answer:
            return
        body = {"prompt": [*prompt, *answer], "max_tokens": 0, "echo": True, "logprobs": 1, "cache_prompt": False}
        found = self._post(self._judge, "/v1/completions", body)["choices"][0]["logprobs"]
        own, best = found["token_logprobs"][len(prompt) :], found["top_logprobs"][len(prompt) :]
        assert len(own) == len(answer), f"{len(own)} of {len(answer)} tokens were judged"
        behind = [max(top.values()) - one for one, top in zip(own, best, strict=True)]
        with self._lock:
            self.findings.n_checked += len(behind)
            self.findings.n_behind += sum(one > 0 for one in behind)
            self.findings.worst = max(self.findings.worst, *behind)
        if max(behind) > self._noise:
            at = behind.index(max(behind))
            self._fault(f"token {at} of an answer to {len(prompt)} tokens is {behind[at]:.2f} behind the best")

    def _check_words(self, chat: Chat, text: str) -> None:
        with self._lock:
            strangers = [word for word in self._words if word != chat.word and word in text]
        if strangers:
            self._fault(f"a chat with {chat.word} was told {', '.join(strangers)}: {text!r}")

    def _fault(self, text: str) -> None:
        with self._lock:
            self.findings.faults.append(text)
        print("FAULT", text, flush=True)

    # connections

    def _client(self, server: Server) -> httpx.Client:
        clients: dict[str, httpx.Client] = self._local.__dict__.setdefault("clients", {})
        if server.url not in clients:
            clients[server.url] = httpx.Client(base_url=server.url, timeout=3600, trust_env=False)
        return clients[server.url]

    def _post(self, server: Server, path: str, body: dict[str, Any]) -> Any:
        reply = self._client(server).post(path, json=body)
        assert reply.status_code == 200, f"{path} {reply.status_code} {reply.text[:200]}"
        return reply.json()


def memory(server: Server) -> tuple[float, float]:
    """MB that the idle server and its worker take, after a rest."""
    server.wait_idle(30)
    time.sleep(REST)
    (worker,) = server.worker_pids()
    return resident_bytes(server.pid) / 1e6, resident_bytes(worker) / 1e6


def soak(arguments: argparse.Namespace, folder: Path) -> int:
    model = Path(arguments.model) if arguments.model else KINDS[arguments.kind](folder / "tiny.gguf", n_layer=6)
    flags = ["-c", "1024", "-np", "4", "-t", "1", "--layout", arguments.layout]
    kept = ["--cache-ram", str(arguments.cache_ram), "--cache-dir", str(folder / "cache")]
    kept += ["--cache-disk", str(arguments.cache_disk)]
    with (
        Server(model, *flags, *kept, log=folder / "server.log") as server,
        Server(model, *flags, "--cache-ram", "0", log=folder / "judge.log") as judge,
    ):
        run = Soak(server, judge, noise=arguments.noise, seed=arguments.seed, n_predict=arguments.n_predict)
        seen: list[tuple[int, float, float]] = []
        done, began = 0, time.monotonic()
        with ThreadPoolExecutor(arguments.clients) as pool:
            while done < arguments.requests:
                step = min(arguments.every, arguments.requests - done)
                list(pool.map(run.one, range(step)))
                done += step
                seen.append((done, *memory(server)))
                found = run.findings
                print(
                    f"{done} requests, {time.monotonic() - began:.0f} s: "
                    f"server {seen[-1][1]:.1f} MB, worker {seen[-1][2]:.1f} MB, "
                    f"{found.n_checked} tokens judged, {found.n_behind} not the best, worst {found.worst:.3f}, "
                    f"{len(found.faults)} faults",
                    flush=True,
                )
        names = ("cache_hits_total", "disk_hits_total", "cache_evictions_total", "disk_evictions_total", "disk_bad_total")
        print(", ".join(f"{name} {server.metric('puna:' + name):.0f}" for name in names))
        print("requests by kind:", dict(run.findings.kinds))
        print(f"of prompts that came as tokens {run.findings.cached} tokens were cached, {run.findings.read} read")
        warnings = [line for line in server.log.splitlines() if "WARNING" in line or "ERROR" in line]
        print("\n".join(["the server's warnings:", *warnings[:20]]) if warnings else "the server warned of nothing")
    later = [one for one in seen if one[0] >= arguments.every]
    growth = [later[-1][i] - later[0][i] for i in (1, 2)]
    print(f"from {later[0][0]} to {later[-1][0]} requests: server {growth[0]:+.1f} MB, worker {growth[1]:+.1f} MB")
    return int(bool(run.findings.faults) or max(growth) > arguments.most_growth)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kind", choices=sorted(KINDS), default="llama", help="which tiny model with random weights to write")
    parser.add_argument("--model", help="a model's file instead")
    parser.add_argument("--layout", choices=["split", "unified"], default="split")
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--every", type=int, default=1000, help="requests between two looks at the memory")
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--n-predict", type=int, default=12)
    parser.add_argument("--noise", type=float, default=0.5)
    parser.add_argument("--cache-ram", type=int, default=2, help="MiB")
    parser.add_argument("--cache-disk", type=int, default=4, help="MiB")
    parser.add_argument("--most-growth", type=float, default=10.0, help="MB after the first look")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="puna-soak-") as folder:
        return soak(arguments, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
