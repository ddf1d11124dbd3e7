"""`logit_bias` in all its forms: pairs or an object, token ids or texts, a number or `false` for a ban."""

from __future__ import annotations

import math
import re
from typing import Any, Literal

from puna.errors import InvalidRequest
from puna.service.ports import Tokenizer
from puna.service.prompts import outside

STRONGEST = 10_000.0
"""Larger biases are made this large: more would change no choice, and sums of logits could overflow."""

_ID = re.compile(r"[+-]?[0-9]{1,12}")


Kind = Literal["input_ids", "tokens"]


def decode_bias(
    value: Any, tokenizer: Tokenizer, *, kind: Kind | None = None, texts: bool = True
) -> tuple[tuple[int, float], ...]:
    """(token id, bias) pairs; of a token that occurs twice the last one counts. Raises `InvalidRequest`.

    A text stands for all tokens that it is made of. `kind` says what an object's keys are: ids, or texts even where they
    look like numbers. Without it a whole number is an id, and `texts` says whether anything else may be there.
    """
    if value is None:
        return ()
    texts = texts if kind is None else kind == "tokens"
    biases: dict[int, float] = {}
    if isinstance(value, dict):
        for key, number in value.items():
            at = f"logit_bias.{key[:64]}"
            token = int(key) if kind != "tokens" and _ID.fullmatch(key) else key
            _add(biases, tokenizer, token, number, at, texts=texts)
    elif isinstance(value, list):
        for index, pair in enumerate(value):
            at = f"logit_bias.{index}"
            if not isinstance(pair, list) or len(pair) != 2:
                raise InvalidRequest(f"Field '{at}': a pair of token and bias is expected", param=at)
            _add(biases, tokenizer, pair[0], pair[1], at, texts=texts)
    else:
        raise InvalidRequest("Field 'logit_bias': a list of pairs or an object is expected", param="logit_bias")
    return tuple(biases.items())


def _add(biases: dict[int, float], tokenizer: Tokenizer, token: Any, number: Any, at: str, *, texts: bool) -> None:
    bias = _bias(number, at)
    if isinstance(token, int) and not isinstance(token, bool):
        if not 0 <= token < tokenizer.n_tokens:
            raise outside(token, tokenizer.n_tokens, at)
        biases[token] = bias
    elif isinstance(token, str) and texts:
        biases.update(dict.fromkeys(_tokens_of(tokenizer, token), bias))
    else:
        expected = "a token id or a text" if texts else "a token id"
        raise InvalidRequest(f"Field '{at}': {expected} is expected", param=at)


def _tokens_of(tokenizer: Tokenizer, text: str) -> list[int]:
    tokens = tokenizer.tokenize(text, add_special=False, parse_special=False)
    # Some vocabularies put a blank before every text; a token for that alone is not what the caller named.
    if len(tokens) > 1 and tokenizer.piece(tokens[0]) == b" " and not text.startswith(" "):
        return tokens[1:]
    return tokens


def _bias(number: Any, at: str) -> float:
    if number is False:
        return -math.inf
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not math.isfinite(number):
        raise InvalidRequest(f"Field '{at}': the bias has to be a finite number, or false to ban the token", param=at)
    return min(STRONGEST, max(-STRONGEST, float(number)))
