"""Random schemas, and random values that the engine lets through."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from jsonschema import Draft202012Validator
from llguidance import LLMatcher

from tests.unit.grammar.reference import BYTES

NAMES = ("a", "b", "c")
_MAPS = ("properties", "patternProperties", "$defs", "dependentSchemas")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedProperties")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains")
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_OTHERS = ("type", "enum", "const", "required", "multipleOf", "pattern", "format", "uniqueItems", "$ref", "dependentRequired")
_TYPES = ("string", "object", "array", "integer", "number", "null", "boolean", ["string", "null"], ["object", "array"])
_VALUES = (1, "a", "b", None, True, [1], {"a": 1}, 2.5, "c")


class SchemaMaker:
    """Makes schemas out of every keyword, so that hardly any makes sense and every combination comes up."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def schema(self, depth: int = 3) -> Any:
        """A schema, most often an object."""
        choose = self._random
        if depth <= 0 or choose.random() < 0.1:
            return choose.choice([True, False])
        keywords = choose.choices((*_MAPS, *_LISTS, *_SINGLE, *_COUNTS, *_BOUNDS, *_OTHERS), k=choose.randint(1, 4))
        return {keyword: self._value(keyword, depth - 1) for keyword in keywords}

    def _value(self, keyword: str, depth: int) -> Any:
        choose = self._random
        if keyword in _MAPS:
            names = choose.sample([*NAMES, "^a"], choose.randint(0, 3))
            return {name: self.schema(depth) for name in names}
        if keyword in _LISTS:
            return [self.schema(depth) for _ in range(choose.randint(1, 3))]
        if keyword in _SINGLE:
            return self.schema(depth)
        if keyword in _COUNTS:
            return choose.randint(0, 3)
        if keyword in _BOUNDS:
            return choose.choice([0, 1, 5, -3, 2.5])
        return {
            "type": choose.choice(_TYPES),
            "enum": choose.sample(_VALUES, choose.randint(1, 4)),
            "const": choose.choice(_VALUES),
            "required": choose.sample(NAMES, choose.randint(0, 2)),
            "multipleOf": choose.choice([1, 2, 0.5, 3]),
            "pattern": choose.choice(["^a+$", "b", "^[a-z]{2,4}$", r"\d", '^[^"]*$']),
            "format": choose.choice(["date", "email", "nonsense", "int32", "uuid"]),
            "uniqueItems": True,
            "$ref": choose.choice(["#", "#/$defs/a", "#/properties/a", "#/allOf/0", "#/nowhere"]),
            "dependentRequired": {choose.choice(NAMES): [choose.choice(NAMES)] for _ in range(2)},
        }[keyword]


def is_valid(schema: Any, value: Any) -> bool | None:
    """What the validator says; None where it runs in circles, as it does for a schema that contradicts itself."""
    try:
        return bool(Draft202012Validator(schema).is_valid(value))
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return None


_WEIGHTS = np.ones(256)
_WEIGHTS[list(b'"}]')] = 40
_WEIGHTS[ord("\\")] = 0.2
_WEIGHTS[128:] = 0.02


def random_value(grammar: str, choose: random.Random, *, patience: int = 200) -> str | None:
    """A text that the grammar allows, None if none came to an end in time."""
    matcher = LLMatcher(BYTES, grammar, log_level=0)
    text = bytearray()
    for _ in range(patience):
        mask = np.unpackbits(np.frombuffer(matcher.compute_bitmask(), np.uint8), bitorder="little")[:256]
        weights = mask * _WEIGHTS
        if matcher.is_accepting() and (choose.random() < 0.5 or not weights.any()):
            return text.decode("utf-8", "replace")
        assert weights.any(), f"a dead end after {bytes(text)!r}"
        byte = choose.choices(range(256), weights.tolist())[0]
        text.append(byte)
        matcher.consume_token(byte)
        assert not matcher.is_error(), matcher.get_error()
        if matcher.is_stopped():
            return text.decode("utf-8", "replace")
    return None
