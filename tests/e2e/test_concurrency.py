"""Many clients at once: everybody gets the whole of their own text, and control routes answer meanwhile."""

from __future__ import annotations

import random
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import ServerMaker
from tests.e2e.dialects import CHAT, DIALECTS, NATIVE, forced
from tests.e2e.server import Server, wait_until
from tests.e2e.sse import join_text


def test_eight_streams_on_two_slots_all_finish(tiny_llama: Path, make_server: ServerMaker) -> None:
    """While two further clients open streams and leave them at random."""
    server = make_server(tiny_llama, "-c", "1024", "-np", "2", "-t", "1")
    over = threading.Event()

    def come_and_go(seed: int) -> None:
        chance = random.Random(seed)
        while not over.is_set():
            body = NATIVE.body(f"leaver {seed}", n_predict=500, ignore_eos=True)
            with server.stream("/completion", body) as frames:
                for _ in range(chance.randrange(6)):
                    next(frames)

    def stay(number: int) -> bool:
        text = "".join(f"{number}-{i} 😀 " for i in range(40))
        dialect = DIALECTS[number % 3]
        body = dialect.body(f"client {number}", grammar=forced(text), temperature=1.0, seed=number)
        return join_text(server.frames(dialect.path, body)) == text

    leavers = [threading.Thread(target=come_and_go, args=(seed,)) for seed in range(2)]
    for thread in leavers:
        thread.start()
    try:
        with ThreadPoolExecutor(8) as pool:
            for _ in range(3):
                assert all(pool.map(stay, range(8)))
    finally:
        over.set()
        for thread in leavers:
            thread.join(20)
    server.wait_idle()
    server.assert_alive()


def test_two_hundred_short_rounds_leave_no_slot_stuck(tiny_server: Server) -> None:
    def ask(seed: int) -> int:
        reply = tiny_server.post("/completion", NATIVE.body(f"r{seed}", n_predict=2, id_slot=seed % 2, ignore_eos=True))
        predicted: int = reply.json()["tokens_predicted"]
        return predicted

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(200))) == [2] * 200
    tiny_server.wait_idle()


def test_control_routes_answer_during_a_long_prefill(slow_server: Server) -> None:
    prompt = list(range(300, 400)) * 20
    replies: list[int] = []

    def prefill() -> None:
        reply = slow_server.post("/completion", {"prompt": prompt, "n_predict": 1, "cache_prompt": False}, timeout=60)
        replies.append(reply.status_code)

    thread = threading.Thread(target=prefill)
    thread.start()
    slow_server.wait_busy(1)
    times: list[float] = []
    while thread.is_alive():
        for path in ("/health", "/slots", "/props"):
            start = time.monotonic()
            assert slow_server.get(path).status_code == 200
            times.append(time.monotonic() - start)
        time.sleep(0.05)
    thread.join()
    assert replies == [200]
    assert len(times) >= 9, "the prefill was over before anything could be measured"
    assert statistics.quantiles(times, n=100)[-1] < 0.2


def test_a_full_queue_is_429_with_retry_after(slow_llama: Path, make_server: ServerMaker) -> None:
    server = make_server(slow_llama, "-c", "2048", "-np", "1", "-t", "1", "--max-queue", "1")
    body = NATIVE.body("x", n_predict=1500, ignore_eos=True)
    with server.stream("/completion", body) as running:
        next(running)
        waiting = threading.Thread(target=lambda: server.post("/completion", {"prompt": "y", "n_predict": 1}))
        waiting.start()
        wait_until(lambda: server.metric("llamacpp:requests_deferred") == 1, 5, "the second request does not wait")
        reply = server.post("/completion", {"prompt": "z", "n_predict": 1}, timeout=5)
        assert reply.status_code == 429
        assert int(reply.headers["retry-after"]) >= 1
        assert reply.json()["error"]["type"] == "rate_limit_error"
    waiting.join(20)
    assert not waiting.is_alive()
    server.assert_alive()


@pytest.mark.parametrize("layout", ["split", "unified"])
def test_no_conversation_leaks_into_another(tiny_llama: Path, make_server: ServerMaker, layout: str) -> None:
    """Small contexts and a cache of a few prompts, so that everything is evicted and woken all the time.

    A random model repeats nothing on purpose, so a leak shows as a different answer: greedy answers must equal
    those of the same requests alone, where no other prompt was ever seen.
    """
    flags = ("-c", "192", "-np", "2", "-t", "1", "--layout", layout)
    server = make_server(tiny_llama, *flags, "--cache-ram", "1")
    markers = [f"marker{i}{'abcdefghij'[i] * 3}" for i in range(10)]

    def chat(number: int, turns: int) -> dict[str, Any]:
        messages = []
        for turn in range(turns):
            messages.append({"role": "user", "content": f"{markers[number]} says {turn} the time"})
            messages.append({"role": "assistant", "content": f"{markers[number]} heard"})
        messages.append({"role": "user", "content": f"{markers[number]} asks"})
        return {"messages": messages, "max_tokens": 12, "temperature": 0, "ignore_eos": True}

    def fresh(number: int) -> dict[str, Any]:
        return {"prompt": f"{number} new water {number * 7919}", "max_tokens": 12, "temperature": 0, "ignore_eos": True}

    def ask(path: str, body: dict[str, Any]) -> str:
        return CHAT.read(server.json(path, body)).text if path == CHAT.path else server.json(path, body)["choices"][0]["text"]

    jobs = [(CHAT.path, chat(number, turns)) for turns in (0, 1) for number in range(10)]
    jobs += [("/v1/completions", fresh(number)) for number in range(40)]
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda job: ask(*job), jobs))
        again = list(pool.map(lambda job: ask(*job), reversed(jobs)))[::-1]
    server.assert_alive()
    alone = make_server(tiny_llama, *flags, "--cache-ram", "0")
    server = alone
    baseline = [ask(path, {**body, "cache_prompt": False}) for path, body in jobs]
    assert answers == baseline
    assert again == baseline


@pytest.mark.parametrize("model", ["tiny_llama", "tiny_gemma3", "tiny_mamba"])
def test_a_mixed_load_over_shared_prefixes_changes_no_answer(
    model: str, make_server: ServerMaker, request: pytest.FixtureRequest
) -> None:
    """Prompts that branch from one another, several choices, wanted slots, and clients that leave at any time."""
    path: Path = request.getfixturevalue(model)
    server = make_server(path, "-c", "256", "-np", "3", "-t", "1", "--cache-ram", "1")
    chance = random.Random(5)
    base = [chance.randrange(300, 700) for _ in range(200)]
    prompts = [base[: chance.randrange(1, 200)] for _ in range(20)]
    prompts += [base[: chance.choice([50, 100, 150])] + [300 + chance.randrange(5)] * chance.randrange(1, 20) for _ in range(20)]
    prompts += [[300 + chance.randrange(8)] * chance.randrange(1, 100) for _ in range(10)]

    def body(prompt: Any, **fields: Any) -> dict[str, Any]:
        return {"prompt": prompt, "n_predict": 8, "temperature": 0, "ignore_eos": True, "return_tokens": True, **fields}

    expected = [server.json("/completion", body(prompt, cache_prompt=False))["tokens"] for prompt in prompts]

    def client(seed: int) -> list[str]:
        chance = random.Random(seed)
        wrong = []
        for _ in range(25):
            number, other = chance.randrange(len(prompts)), chance.randrange(len(prompts))
            prompt = prompts[number]
            kind = chance.choice(["leave", "choices", "slot", "list", "stream", "plain"])
            answers = [expected[number]]
            if kind == "leave":
                with server.stream("/completion", body(prompt, n_predict=50)) as frames:
                    for _ in range(chance.randrange(4)):
                        next(frames)
            elif kind == "choices":
                answers = [reply["tokens"] for reply in server.json("/completion", body(prompt, n_cmpl=2))]
            elif kind == "slot":
                answers = [server.json("/completion", body(prompt, id_slot=chance.randrange(3)))["tokens"]]
            elif kind == "list":
                first, second = server.json("/completion", body([prompt, prompts[other]]))
                answers = [first["tokens"]] if second["tokens"] == expected[other] else []
            elif kind == "stream":
                answers = [[token for frame in server.frames("/completion", body(prompt)) for token in frame["tokens"]]]
            else:
                answers = [server.json("/completion", body(prompt))["tokens"]]
            if not answers or any(answer != expected[number] for answer in answers):
                wrong.append(kind)
        return wrong

    with ThreadPoolExecutor(6) as pool:
        assert [wrong for wrong in pool.map(client, range(6)) if wrong] == []
    server.wait_idle()
    server.assert_alive()


def test_forced_markers_stay_with_their_own_conversation(tiny_server: Server) -> None:
    def talk(number: int) -> bool:
        marker = f"<{number}:{'αβγδεζηθικ'[number]}>"
        messages: list[dict[str, str]] = [{"role": "system", "content": "the same beginning for all of them " * 3}]
        for turn in range(4):
            messages.append({"role": "user", "content": f"turn {turn} of {marker}"})
            body = {"messages": messages, "grammar": forced(f"{marker} at {turn}")}
            text = CHAT.read(tiny_server.json(CHAT.path, body)).text
            if text != f"{marker} at {turn}":
                return False
            messages.append({"role": "assistant", "content": text})
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(talk, range(10)))
    assert not any(marker in str(tiny_server.slots()) for marker in "αβγδεζηθικ")


def test_cached_tokens_are_counted_and_change_nothing(tiny_server: Server) -> None:
    prompt = "the first water of the world was " * 10
    body = {"prompt": prompt, "max_tokens": 8, "temperature": 0, "ignore_eos": True}
    cold = tiny_server.json("/v1/completions", {**body, "cache_prompt": False})
    tiny_server.json("/v1/completions", body)
    warm = tiny_server.json("/v1/completions", body)
    assert cold["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    cached = warm["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert cold["usage"]["prompt_tokens"] // 2 < cached < cold["usage"]["prompt_tokens"]
    assert warm["choices"][0]["text"] == cold["choices"][0]["text"]


def test_clients_that_share_a_prompt_share_its_prefill(slow_server: Server) -> None:
    prompt = list(range(300, 460)) * 5
    before = slow_server.metric("llamacpp:prompt_tokens_total")

    def ask(number: int) -> int:
        reply = slow_server.json("/completion", {"prompt": [*prompt, 400 + number], "n_predict": 2, "ignore_eos": True})
        predicted: int = reply["tokens_predicted"]
        return predicted

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(ask, range(6))) == [2] * 6
    assert slow_server.metric("llamacpp:prompt_tokens_total") - before < 2 * len(prompt)
