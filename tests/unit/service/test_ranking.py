"""The best of several answers."""

from __future__ import annotations

import math

import msgspec

from puna.service.answers import Answer
from puna.service.params import GenerationParams, plan
from puna.service.ranking import choose_best, mean_logprob
from puna.types import Sampling, TokenProb


def answers(params: GenerationParams, *logprobs: tuple[float, ...]) -> list[Answer]:
    """Answers with tokens of these log-probabilities, to as many prompts as they make groups."""
    prompts = tuple((index,) for index in range(len(logprobs) // params.n_tried))
    made = [Answer(index, generation) for index, generation in enumerate(plan(prompts, params))]
    for answer, values in zip(made, logprobs, strict=True):
        answer.parts = [str(answer.index)]
        answer.probs = [TokenProb(1, value) for value in values]
    return made


def test_the_best_come_first_and_prompts_stay_apart() -> None:
    params = GenerationParams(n=2, best_of=3)
    made = answers(params, (-1.0, -3.0), (-0.5,), (-1.9,), (-9.0,), (-7.0,), (-8.0,))
    chosen = choose_best(made, params)
    assert [answer.text for answer in chosen] == ["1", "2", "4", "5"]
    assert [answer.index for answer in chosen] == [0, 1, 2, 3]


def test_a_long_answer_is_not_worse_for_its_length() -> None:
    params = GenerationParams(best_of=2)
    (best,) = choose_best(answers(params, (-1.0,), (-0.9,) * 50), params)
    assert best.text == "1"


def test_of_equals_the_first_is_taken_and_an_empty_one_last() -> None:
    params = GenerationParams(n=3, best_of=4)
    assert [one.text for one in choose_best(answers(params, (), (-2.0,), (-1.0,), (-1.0,)), params)] == ["2", "3", "1"]


def test_probabilities_that_nobody_asked_for_are_taken_out() -> None:
    for asked in (0, 3):
        params = GenerationParams(best_of=2, sampling=Sampling(n_probs=asked))
        made = answers(params, (-1.0,), (-2.0,))
        assert {answer.generation.sampling.n_probs for answer in made} == {max(1, asked)}
        (best,) = choose_best(made, params)
        assert best.generation.sampling.n_probs == asked and len(best.probs) == (1 if asked else 0)


def test_all_are_given_when_no_more_were_tried() -> None:
    params = GenerationParams(n=2)
    made = answers(params, (-2.0,), (-1.0,))
    assert choose_best(made, params) == made


def test_probabilities_after_the_chain_are_ranked_by_their_logarithms() -> None:
    params = GenerationParams(best_of=2, sampling=Sampling(post_sampling_probs=True))
    made = answers(params, (0.5, 0.5), (0.9, 0.2), (0.0,), (1e-9,))
    assert [one.text for one in choose_best(made, params)] == ["0", "3"]
    assert mean_logprob(made[2]) == -math.inf


def test_every_field_reaches_the_generation() -> None:
    params = GenerationParams(
        max_tokens=5, stop=("x",), cache_prompt=False, id_slot=1, want_progress=True, prompt_probs=True, context_shift=True,
        n_keep=3, n_discard=4, deterministic=True, n_indent=2, t_max_predict_ms=9,
    )  # fmt: skip
    (generation,) = plan(((1,),), params)
    values = msgspec.structs.asdict(params)
    for name in set(values) & set(generation.__struct_fields__) - {"sampling"}:
        assert getattr(generation, name) == values[name], name
    assert set(generation.__struct_fields__) - set(values) == {"prompt", "media"}
