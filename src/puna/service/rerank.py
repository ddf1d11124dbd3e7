"""How well documents answer a query, by a model that scores pairs of texts."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Sequence

import msgspec
import numpy as np

from puna.chat.special import SpecialTexts
from puna.errors import InputTooLong, ServerFault
from puna.service.adapters import Scales
from puna.service.ports import Tokenizer
from puna.service.prompts import LONG_TEXT
from puna.service.service import Service
from puna.types import ModelFacts

_PLACE = re.compile(r"\{(query|document)\}")


class Ranked(msgspec.Struct, frozen=True):
    """One document's place."""

    index: int
    """Its number in the request."""
    score: float
    """0 to 1, the higher the better."""
    raw: float
    """What the model's head put out: a number without bounds, or for heads that answer yes or no the chance of a yes."""


class Ranking(msgspec.Struct, frozen=True):
    """Documents, the best first."""

    documents: list[Ranked]
    n_tokens: int
    """Tokens of all pairs."""


async def rank(
    service: Service,
    query: str,
    documents: Sequence[str],
    *,
    lora: Scales | None = None,
    truncate: bool = False,
    most_tokens: int | None = None,
    param: str,
) -> Ranking:
    """Score every document. Those that score alike keep their order. `lora` are the adapters to use, if not those set.

    A pair that is too long is an error with the document's number, or with `truncate` loses the document's end.
    `most_tokens` cuts each document to so many tokens first.

    Raises `NotSupported`, `Unavailable`, `QueueFull` or `InputTooLong`.
    """
    facts = service.check_ranks()
    maker = PairMaker(service.tokenizer, facts, query)
    limit = facts.n_ctx_pooled

    def work() -> list[list[int]]:
        pairs: list[list[int]] = []
        for index, document in enumerate(documents):
            pair = maker.pair(document, most_tokens)
            if len(pair) > limit and truncate:
                pair = maker.fitting(document, limit)
            if len(pair) > limit:
                raise InputTooLong(index, len(pair), limit, param=param)
            pairs.append(pair)
        return pairs

    n_characters = sum(map(len, documents)) + len(query) * len(documents)
    pairs = work() if n_characters < LONG_TEXT else await asyncio.to_thread(work)
    found = await service.engine.embed(pairs, lora=service.adapters.current if lora is None else lora).all()
    raw = [float(np.frombuffer(data, np.float32)[0]) for data in found]
    for index, value in enumerate(raw):
        if not math.isfinite(value):
            raise ServerFault(f"the model gave no finite score for document {index}")
    scored = [Ranked(index, value if facts.n_embd_out > 1 else sigmoid(value), value) for index, value in enumerate(raw)]
    return Ranking(sorted(scored, key=lambda one: -one.raw), sum(map(len, pairs)))


def sigmoid(value: float) -> float:
    """A number without bounds as one from 0 to 1."""
    if value >= 0:
        return 1.0 / (1.0 + math.exp(-value))
    small = math.exp(value)
    return small / (1.0 + small)


class PairMaker:
    """Makes a query and documents into what the model was trained on: the file's own template, or both texts between
    the tokens that begin, separate and end."""

    def __init__(self, tokenizer: Tokenizer, facts: ModelFacts, query: str) -> None:
        self._tokenizer = tokenizer
        self._query = query
        self._template = facts.rerank_template
        self._special = SpecialTexts(tokenizer.special_texts() if self._template is not None else ())
        self._head = [*facts.pair_begin, *self._plain(query), *facts.pair_middle]
        self._tail = facts.pair_end

    def pair(self, document: str, most_tokens: int | None = None) -> list[int]:
        """The ids to score; of the document at most so many."""
        if self._template is not None:
            if most_tokens is not None:
                document = self._cut(document, most_tokens)
            return self._filled(self._template, document)
        tokens = self._plain(document)
        return [*self._head, *tokens[:most_tokens], *self._tail]

    def fitting(self, document: str, limit: int) -> list[int]:
        """The same with as much of the document as fits; more than `limit` where not even the query does."""
        room = limit - len(self.pair(""))
        pair = self.pair(document, max(0, room))
        while len(pair) > limit and room > 0:  # texts may take more tokens together than apart
            room = max(0, room - (len(pair) - limit))
            pair = self.pair(document, room)
        return pair

    def _plain(self, text: str) -> list[int]:
        return self._tokenizer.tokenize(text, add_special=False, parse_special=False)

    def _cut(self, document: str, most_tokens: int) -> str:
        tokens = self._plain(document)
        if len(tokens) <= most_tokens:
            return document
        return self._tokenizer.detokenize(tokens[:most_tokens]).rstrip("\ufffd")

    def _filled(self, template: str, document: str) -> list[int]:
        """Tokens of the template with both texts in it, in which control tokens' texts stay texts."""
        values = {"query": self._query, "document": document}
        tokens: list[int] = []
        text = ""
        done = 0
        for place in _PLACE.finditer(template):
            text += template[done : place.start()]
            done = place.end()
            value = values[place.group(1)]
            at = 0
            for start, end in sorted([*self._special.find(value), *self._special.loose_ends(value)]):
                if start < at:
                    continue
                tokens += self._tokenizer.tokenize(text + value[at:start], add_special=False, parse_special=True)
                tokens += self._plain(value[start:end])
                text, at = "", end
            text += value[at:]
        return tokens + self._tokenizer.tokenize(text + template[done:], add_special=False, parse_special=True)
