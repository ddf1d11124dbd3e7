"""Admission of several answers, seeds, and the states in which nothing is admitted."""

from __future__ import annotations

import msgspec
import pytest

from puna.config import ServerSettings
from puna.errors import InvalidRequest, NotSupported, QueueFull, Unavailable
from puna.service.answers import collect
from puna.service.params import GenerationParams, plan
from puna.service.service import Service
from puna.types import Generation, Sampling, Timings
from tests.fakes import FACTS, FakeEngine, say


def service(engine: FakeEngine, **settings: object) -> Service:
    return Service(engine, msgspec.convert(settings, ServerSettings))


def test_each_answer_has_its_own_seed() -> None:
    generations = plan(((1,), (2,)), GenerationParams(seed=2**32 - 1, n=2, sampling=Sampling(top_k=3)))
    assert [(g.prompt, g.sampling.seed) for g in generations] == [((1,), 2**32 - 1), ((1,), 0), ((2,), 2**32 - 1), ((2,), 0)]
    assert all(g.sampling.top_k == 3 for g in generations)


def test_random_seeds_are_real_and_differ() -> None:
    seeds = {plan(((1,),), GenerationParams())[0].sampling.seed for _ in range(8)}
    assert len(seeds) > 1 and all(0 <= seed < 2**32 for seed in seeds)


async def test_all_answers_are_admitted_or_none() -> None:
    def refuse(_generation: Generation, number: int) -> Exception | None:
        return QueueFull("full", retry_after=7) if number == 2 else None

    engine = FakeEngine(refuse=refuse)
    with pytest.raises(QueueFull):
        await service(engine).generate([(1,)], GenerationParams(n=3))
    assert len(engine.streams) == 2 and all(stream.closed for stream in engine.streams)


async def test_more_answers_than_could_ever_wait_are_the_callers_mistake() -> None:
    engine = FakeEngine()
    with pytest.raises(InvalidRequest):
        await service(engine, max_queue=4).generate([(1,), (2,), (3,)], GenerationParams(n=3))
    assert engine.streams == []


async def test_answers_are_collected_and_everything_is_closed() -> None:
    engine = FakeEngine(script=lambda number: say(f"answer {number}", stop_type="limit"))
    answers = await collect(await service(engine).generate([(1,), (2,)], GenerationParams(n=2)))
    assert [answer.text for answer in answers] == ["answer 0", "answer 1", "answer 2", "answer 3"]
    assert all(answer.stop_type == "limit" and answer.n_predicted == 8 for answer in answers)
    assert all(stream.closed for stream in engine.streams)


async def test_one_failure_ends_all_answers() -> None:
    engine = FakeEngine(script=lambda number: [5.0] if number else [Unavailable("gone")])
    with pytest.raises(Unavailable, match="gone"):
        await collect(await service(engine).generate([(1,)], GenerationParams(n=2)))
    assert all(stream.closed for stream in engine.streams)


async def test_the_observer_hears_of_each_end() -> None:
    heard: list[tuple[Timings, float | None]] = []

    class Listener:
        def finished(self, timings: Timings, first_token: float | None) -> None:
            heard.append((timings, first_token))

    engine = FakeEngine(script=lambda number: say("abc" if number else "", n_prompt=9))
    running = await Service(engine, ServerSettings(), Listener()).generate([(1,)], GenerationParams(n=2))
    await collect(running)
    assert sorted(timings.predicted_n for timings, _ in heard) == [0, 3]
    assert sorted(first is None for _, first in heard) == [False, True]


def test_while_loading_nothing_is_admitted() -> None:
    with pytest.raises(Unavailable, match="Loading model"):
        service(FakeEngine(facts=None, state="loading")).check_ready()


def test_after_a_failure_the_reason_is_given() -> None:
    for facts in (None, FACTS):
        with pytest.raises(Unavailable, match="no such file"):
            service(FakeEngine(facts=facts, state="failed", failure="no such file")).check_ready()


def test_while_a_worker_restarts_requests_are_taken() -> None:
    service(FakeEngine(state="restarting")).check_ready()


def test_while_draining_nothing_is_admitted() -> None:
    draining = service(FakeEngine())
    draining.drain()
    with pytest.raises(Unavailable, match="shutting down"):
        draining.check_ready()


def test_the_model_has_a_name() -> None:
    assert service(FakeEngine()).model == "tiny-test"
    assert service(FakeEngine(), alias="mine").model == "mine"


def test_a_template_that_cannot_be_used_leaves_the_rest_alone() -> None:
    broken = service(FakeEngine(facts=msgspec.structs.replace(FACTS, chat_template="{% if %}")))
    broken.check_ready()
    for _ in range(2):
        with pytest.raises(NotSupported, match="does not compile"):
            _ = broken.chat
    assert service(FakeEngine(), chat_template="{{ messages }}").chat.template.source == "{{ messages }}"
