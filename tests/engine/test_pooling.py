"""Inputs made into vectors by the real engine, on tiny models."""

from __future__ import annotations

import base64
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from puna.config import EngineSettings, ScaledFile
from puna.engine.assembly import assemble
from puna.engine.workload import Workload
from puna.errors import StartupError
from puna.ipc.frames import Abort, Embed, Output, Submit
from puna.llama.model import Model
from puna.machine import usable_cores
from puna.types import Generation, ModelFacts, Sampling
from tests import tiny
from tests.engine.driver import Diary
from tests.engine.minilm import VECTORS

Vector = Any


class Pools:
    """A workload, and what it has answered."""

    def __init__(self, model: Path, **settings: Any) -> None:
        self.diary = Diary()
        self.warnings: list[str] = []
        chosen = EngineSettings(**{"model": str(model), "n_threads": 1, "n_slots": 2, **settings})
        self.work: Workload
        self.facts: ModelFacts
        self.work, self.facts = assemble(
            chosen, safe_mode=False, recorder=self.diary, progress=lambda _done: None, warn=self.warnings.append
        )
        self.found: dict[int, dict[int, Vector]] = {}
        self.parts: dict[tuple[int, int], list[bytes]] = {}
        self.errors: dict[int, str] = {}
        self.outputs: list[Output] = []
        self.order: list[str] = []
        """What each step was for: `v` for vectors, `t` for text."""
        self._next = 0

    def submit(self, inputs: Sequence[Sequence[int]], **more: Any) -> int:
        self._next += 1
        packed = tuple(array("i", one).tobytes() for one in inputs)
        self.work.submit(Embed(id=self._next, inputs=packed, indices=tuple(range(len(inputs))), **more))
        self.found[self._next] = {}
        return self._next

    def step(self) -> None:
        frame = self.work.step()
        self.order.append("v" if frame.pooled else "t")
        self.outputs += frame.outputs
        for pooled in frame.pooled:
            if pooled.error:
                self.errors[pooled.id] = pooled.error
            for index, data in zip(pooled.indices, pooled.vectors, strict=True):
                parts = self.parts.setdefault((pooled.id, index), [])
                parts.append(data)
                if not pooled.part:
                    vector = np.frombuffer(b"".join(parts), np.float32)
                    assert index not in self.found[pooled.id], "a vector came twice"
                    self.found[pooled.id][index] = vector.reshape(-1, self.facts.n_embd_out)

    def run(self, limit: int = 2000) -> None:
        for _ in range(limit):
            if self.work.idle:
                return
            self.step()
        raise AssertionError("it does not come to an end")

    def embed(self, inputs: Sequence[Sequence[int]], **more: Any) -> list[Vector]:
        request = self.submit(inputs, **more)
        self.run()
        assert request not in self.errors, self.errors
        return [self.found[request][index] for index in range(len(inputs))]


def some(n: int, seed: int = 0, top: int = 90) -> list[int]:
    return [int(token) for token in np.random.default_rng(seed).integers(5, top, n)]


def alike(one: Vector, other: Vector) -> bool:
    """Equal but for the rounding that a batch's shape makes: cells of 16 bits, or flash attention."""
    return bool(np.allclose(one, other, atol=3e-2))


@pytest.fixture(scope="module")
def bert(tiny_bert: Path) -> Pools:
    return Pools(tiny_bert)


def test_an_encoder_needs_no_flag_and_makes_no_text(bert: Pools) -> None:
    facts = bert.facts
    assert (facts.pooling, facts.embeds, facts.ranks, facts.has_decoder) == ("mean", True, False, False)
    assert (facts.n_embd_out, facts.n_ctx_pooled) == (64, 512)
    assert bert.work.generator is None


def test_inputs_in_one_batch_are_as_if_alone(bert: Pools) -> None:
    inputs = [some(n, seed=n) for n in (1, 7, 30, 2, 100, 16)]
    together = bert.embed(inputs)
    for one, vector in zip(inputs, together, strict=True):
        assert vector.shape == (1, 64)
        assert alike(bert.embed([one])[0], vector)
    assert not alike(together[0], together[1])


def test_batches_are_filled_and_hold_inputs_of_several_requests(bert: Pools) -> None:
    before, noted = bert.diary.n_decoded, len(bert.diary.phases)
    requests = [bert.submit([some(16, seed=seed)] * 4) for seed in range(4)]
    bert.run()
    assert bert.diary.n_decoded - before == 2, "8 inputs of 16 tokens a batch"
    assert all(len(bert.found[request]) == 4 for request in requests)
    assert bert.diary.phases[noted] == ("decode", tuple(requests))


def test_lanes_compute_side_by_side(tiny_bert: Path, bert: Pools) -> None:
    pools = Pools(tiny_bert, n_threads=2)
    assert pools.work.pooler is not None and len(pools.work.pooler._lanes) == min(2, usable_cores())
    inputs = [some(n, seed=n) for n in (40, 3, 90, 12, 500, 77, 8, 30, 1)]
    for one, other in zip(pools.embed(inputs), bert.embed(inputs), strict=True):
        assert alike(one, other)


def test_the_longest_input_fits(bert: Pools) -> None:
    assert bert.embed([some(512), some(3)])[0].shape == (1, 64)


@pytest.mark.parametrize("pooling", ["mean", "cls", "last"])
def test_poolings_are_made_of_the_vectors_of_tokens(tiny_bert: Path, pooling: str) -> None:
    inputs = [some(9), some(4, seed=1)]
    rows = Pools(tiny_bert, pooling="none").embed(inputs)
    assert [one.shape for one in rows] == [(9, 64), (4, 64)]
    pooled = Pools(tiny_bert, pooling=pooling).embed(inputs)
    for tokens, vector in zip(rows, pooled, strict=True):
        wanted = {"mean": tokens.mean(axis=0), "cls": tokens[0], "last": tokens[-1]}[pooling]
        assert alike(vector[0], wanted)


def test_a_ranking_model_scores(tiny_reranker: Path) -> None:
    pools = Pools(tiny_reranker)
    assert (pools.facts.pooling, pools.facts.n_embd_out) == ("rank", 1)
    assert (pools.facts.pair_begin, pools.facts.pair_middle, pools.facts.pair_end) == ((2,), (3,), ())
    scores = pools.embed([some(9), some(9, seed=1)])
    assert [one.shape for one in scores] == [(1, 1), (1, 1)] and scores[0] != scores[1]
    other = Pools(tiny_reranker, pooling="mean")
    assert other.facts.embeds and other.embed([some(9)])[0].shape == (1, 64)


@pytest.mark.parametrize("fixture", ["tiny_bert", "tiny_llama"])
def test_without_a_head_nothing_is_ranked(request: pytest.FixtureRequest, fixture: str) -> None:
    pools = Pools(request.getfixturevalue(fixture), reranking=True)
    assert pools.work.pooler is None and not pools.facts.ranks and "no ranking head" in pools.facts.why_no_vectors
    assert pools.warnings == [pools.facts.why_no_vectors]
    assert pools.facts.has_decoder is (fixture == "tiny_llama")


def test_a_decoder_embeds_only_when_told_to(tiny_llama: Path) -> None:
    assert Pools(tiny_llama).work.pooler is None
    pools = Pools(tiny_llama, embeddings=True)
    assert (pools.facts.pooling, pools.facts.has_decoder, pools.facts.why_no_vectors) == ("last", True, "")


@pytest.mark.parametrize("pooling", ["last", "none", "mean", "cls"])
@pytest.mark.parametrize("fixture", ["tiny_llama", "tiny_gemma3", "tiny_mamba"])
def test_long_and_short_inputs_of_every_decoder(request: pytest.FixtureRequest, fixture: str, pooling: str) -> None:
    model: Path = request.getfixturevalue(fixture)
    inputs = [some(5), some(300, seed=1), some(40, seed=2)]
    whole = Pools(model, embeddings=True, pooling=pooling).embed(inputs)
    pools = Pools(model, embeddings=True, pooling=pooling, n_ubatch=64)
    pieces = pools.embed(inputs)
    rows = [len(one) if pooling == "none" else 1 for one in inputs]
    for one, other, n in zip(whole, pieces, rows, strict=True):
        assert one.shape == other.shape == (n, 64)
        assert alike(one, other)
    # the long input was the only one in memory, and is gone
    assert alike(pools.embed([inputs[0]])[0], pieces[0])


@pytest.mark.parametrize("fixture", ["tiny_bert", "tiny_llama", "tiny_mamba"])
def test_the_smallest_batches_work(request: pytest.FixtureRequest, fixture: str) -> None:
    pools = Pools(request.getfixturevalue(fixture), embeddings=True, n_ubatch=1)
    assert [one.shape for one in pools.embed([some(3), some(30), some(1)] * 5)] == [(1, 64)] * 15


def test_an_aborted_request_brings_nothing_more(tiny_llama: Path) -> None:
    pools = Pools(tiny_llama, embeddings=True, n_ubatch=32)
    long = pools.submit([some(200)])
    many = pools.submit([some(20, seed=seed) for seed in range(10)])
    pools.step()
    for request in (long, many):
        pools.work.abort(Abort(request))
        assert (request in pools.found) and not pools.errors
    seen = {request: len(pools.found[request]) for request in (long, many)}
    assert alike(pools.embed([some(20)])[0], Pools(tiny_llama, embeddings=True).embed([some(20)])[0])
    assert seen == {request: len(pools.found[request]) for request in (long, many)}


def test_text_and_vectors_take_turns(tiny_llama: Path) -> None:
    pools = Pools(tiny_llama, embeddings=True, n_ctx=512)
    generation = Generation(prompt=(5, 6, 7), sampling=Sampling(temperature=0, ignore_eos=True), max_tokens=40)
    pools.work.submit(Submit(id=1000, generation=generation))
    for _ in range(4):
        pools.step()
    pools.submit([some(60, seed=seed) for seed in range(40)])
    start = len(pools.order)
    pools.run()
    mixed = "".join(pools.order[start:])
    assert "vv" not in mixed[: mixed.rindex("t")], "no two batches of vectors in a row while text is written"
    assert sum(len(output.tokens) for output in pools.outputs) == 40


def test_adapters_apply_and_do_not_mix(tiny_llama: Path, tmp_path: Path) -> None:
    adapter = tiny.write_lora(tmp_path / "a.gguf")
    pools = Pools(tiny_llama, embeddings=True, lora=(ScaledFile(str(adapter), 1.0),))
    tokens = some(12)
    plain, changed = pools.embed([tokens])[0], pools.embed([tokens], lora=((0, 1.0),))[0]
    assert not alike(plain, changed)
    before = pools.diary.n_decoded
    first, second = pools.submit([tokens]), pools.submit([tokens], lora=((0, 1.0),))
    pools.run()
    assert pools.diary.n_decoded - before == 2
    assert alike(pools.found[first][0], plain) and alike(pools.found[second][0], changed)


class Stingy:
    """Makes contexts up to a length, and none that is longer."""

    def __init__(self, pools: Pools, most: int) -> None:
        assert pools.work.pooler is not None
        self.make, self.most = pools.work.pooler._make, most

    def __call__(self, length: int) -> Any:
        if length > self.most:
            raise StartupError("no memory")
        return self.make(length)


def test_want_of_memory_ends_one_request_only(tiny_llama: Path) -> None:
    pools = Pools(tiny_llama, embeddings=True, pooling="mean", n_ubatch=64)
    assert pools.work.pooler is not None
    pools.work.pooler._make = Stingy(pools, 128)
    long, short = pools.submit([some(5), some(200)]), pools.submit([some(100)])
    pools.run()
    assert "input 1: there is no memory for an input of 200 tokens" in pools.errors[long]
    assert pools.found[short][0].shape == (1, 64) and pools.warnings


def test_the_numbers_are_counted(bert: Pools) -> None:
    assert bert.work.pooler is not None
    before = bert.work.report().stats
    bert.embed([some(10), some(20)])
    after = bert.work.report().stats
    assert after.pooled_inputs - before.pooled_inputs == 2 and after.pooled_tokens - before.pooled_tokens == 30
    assert after.pooled_ms > before.pooled_ms and after.n_pooling == 0


def test_a_known_model_gives_known_vectors(shared: Path) -> None:
    model = shared / "models" / "all-minilm-l6-v2-q8_0.gguf"
    if not model.is_file():
        pytest.skip(f"there is no {model}")
    pools = Pools(model)
    assert (pools.facts.pooling, pools.facts.n_embd_out) == ("mean", 384)
    vocab = Model(str(model), vocab_only=True)
    for text, wanted in VECTORS.items():
        (vector,) = pools.embed([vocab.vocab.tokenize(text, add_special=True, parse_special=True)])
        known = np.frombuffer(base64.b64decode(wanted), "<f2").astype(np.float64)
        cosine = float(vector[0] @ known / np.linalg.norm(vector[0]) / np.linalg.norm(known))
        # equal on one machine; the engine's kernels round differently from one kind of CPU to another
        assert cosine > 0.9995
