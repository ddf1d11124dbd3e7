"""llama.cpp's result object: what its own routes reply with, and what `__verbose` brings on the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from puna.api.fields import GenerationFields
from puna.api.figures import progress_object, timings_object
from puna.api.probs import probs_list
from puna.api.settings import settings_object
from puna.service.answers import Answer
from puna.service.ports import Tokenizer


class ResultEncoder:
    """Encodes the answers to one request."""

    def __init__(
        self, body: GenerationFields, *, model: str, tokenizer: Tokenizer, chat: Mapping[str, Any] | None = None
    ) -> None:
        """`chat` is what is shown of a chat's settings."""
        self._body = body
        self._chat = chat or {}
        self._model = model
        self._tokenizer = tokenizer

    def result(self, answer: Answer, *, sent: bool) -> dict[str, Any]:
        """Everything about an answer that has ended. Of what was `sent` already, in a stream, there is nothing in it."""
        generation, sampling, body = answer.generation, answer.generation.sampling, self._body
        text = answer.text
        value: dict[str, Any] = {
            "index": answer.index,
            "content": "" if sent else text,
            "tokens": answer.tokens if body.return_tokens and not sent else [],
            "id_slot": answer.slot,
            "stop": True,
            "model": self._model,
            "tokens_predicted": answer.n_predicted,
            "tokens_evaluated": answer.n_prompt,
            "generation_settings": {**settings_object(generation, body), **self._chat},
            "prompt": self._tokenizer.detokenize(generation.prompt),
            "has_new_line": "\n" in text,
            "truncated": answer.truncated,
            "stop_type": answer.stop_type,
            "stopping_word": answer.stopping_word,
            "tokens_cached": answer.n_prompt + max(0, answer.n_predicted - 1),
            "timings": timings_object(answer.timings),
        }
        if answer.probs and not sent:
            value["completion_probabilities"] = probs_list(
                self._tokenizer, answer.probs, n_top=sampling.n_probs, post=sampling.post_sampling_probs
            )
        if answer.progress is not None and not sent:
            value["prompt_progress"] = progress_object(answer.progress)
        return {**value, **warnings_object([answer])}

    def verbose(self, answers: Sequence[Answer], *, sent: bool) -> dict[str, Any]:
        """`__verbose` where it is asked for: an object, or a list of them where there are several answers."""
        if not self._body.verbose:
            return {}
        results = [self.result(answer, sent=sent) for answer in answers]
        return {"__verbose": results[0] if len(results) == 1 else results}


def warnings_object(answers: Sequence[Answer]) -> dict[str, Any]:
    """`warnings` where there are any: what was asked for and is not enforced."""
    constraint = answers[0].generation.constraint
    return {"warnings": constraint.warnings} if constraint is not None and constraint.warnings else {}


def choose_fields(value: dict[str, Any], paths: Sequence[str]) -> dict[str, Any]:
    """Only the fields asked for. `a/b` is found under that name and under `b`; what does not exist is left out."""
    chosen: dict[str, Any] = {}
    for path in paths:
        found: Any = value
        for key in path.split("/"):
            if not isinstance(found, dict) or key not in found:
                break
            found = found[key]
        else:
            chosen[path] = found
            chosen.setdefault(path.rpartition("/")[2], found)
    return chosen
