"""Which of several answers to a prompt are given to the caller. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from puna.service.answers import Answer
from puna.service.params import GenerationParams

AnyAnswer = TypeVar("AnyAnswer", bound=Answer)


def choose_best(answers: Sequence[AnyAnswer], params: GenerationParams) -> list[AnyAnswer]:
    """The `n` best answers to each prompt, best first, numbered anew; all of them where no more were tried.

    Better is what has the higher mean log-probability of its tokens; of equals, what was tried first. Probabilities that
    were computed for this alone are taken out again.
    """
    if params.n_tried == params.n:
        return list(answers)
    chosen: list[AnyAnswer] = []
    for start in range(0, len(answers), params.n_tried):
        group = answers[start : start + params.n_tried]
        chosen += sorted(group, key=mean_logprob, reverse=True)[: params.n]
    for index, answer in enumerate(chosen):
        answer.index = index
        sampling = msgspec.structs.replace(answer.generation.sampling, n_probs=params.sampling.n_probs)
        answer.generation = msgspec.structs.replace(answer.generation, sampling=sampling)
        if params.sampling.n_probs == 0:
            answer.probs.clear()
    return chosen


def mean_logprob(answer: Answer) -> float:
    """The mean of the tokens' log-probabilities; minus infinity for an answer without tokens."""
    if not answer.probs:
        return -math.inf
    values = [prob.logprob for prob in answer.probs]
    if answer.generation.sampling.post_sampling_probs:
        values = [math.log(value) if value > 0 else -math.inf for value in values]
    return math.fsum(values) / len(values)
