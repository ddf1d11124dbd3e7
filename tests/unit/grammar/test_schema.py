"""JSON schemas: what is allowed, what is not, what is given up, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from puna.errors import InvalidRequest
from puna.grammar import prepare
from puna.types import Constraint
from tests.unit.grammar.reference import engine_accepts


def compiled(schema: Any, *, strict: bool = False) -> Constraint:
    return prepare(Constraint("json_schema", json.dumps(schema), strict))


def dump(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


TREE = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"v": {"type": "integer"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
            "required": ["v"],
            "additionalProperties": False,
        }
    },
    "$ref": "#/$defs/node",
}
A_OR_B = [{"required": ["a"]}, {"required": ["b"]}]
AB = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "additionalProperties": False}
KINDS = {
    "type": "object",
    "properties": {"kind": {"enum": ["x", "y", "z"]}, "n": {"type": "integer"}, "s": {"type": "string"}},
    "required": ["kind"],
    "additionalProperties": False,
    "allOf": [
        {"if": {"properties": {"kind": {"const": "x"}}}, "then": {"required": ["n"]}},
        {"if": {"properties": {"kind": {"enum": ["y", "z"]}}}, "then": {"required": ["s"]}, "else": {"properties": {"s": False}}},
    ],
}

CASES: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "anything": (True, [1, "a", None, [1, {}], {"a": []}], []),
    "compact": ({"type": "array", "items": {"type": "integer"}}, [[1, 2]], [["a"]]),
    "recursion": (TREE, [{"v": 1, "kids": [{"v": 2, "kids": []}]}], [{"kids": []}, {"v": 1, "kids": [{}]}, {"v": 1, "x": 1}]),
    "two definitions": (
        {
            "$defs": {"s": {"type": "string"}, "n": {"type": "number"}},
            "prefixItems": [{"$ref": "#/$defs/s"}, {"$ref": "#/$defs/n"}],
            "items": False,
            "minItems": 2,
        },
        [["a", 1.5]],
        [[1, "a"], ["a"], ["a", 1, 2]],
    ),
    "a pointer into anyOf": (
        {
            "properties": {"x": {"anyOf": [{"type": "string"}, {"const": 7}]}, "y": {"$ref": "#/properties/x/anyOf/1"}},
            "required": ["y"],
        },
        [{"y": 7}, {"x": "a", "y": 7}],
        [{"y": "a"}],
    ),
    "escaped pointers": ({"$defs": {"a/b~c%": {"const": 1}}, "$ref": "#/$defs/a~1b~0c%25"}, [1], [2]),
    "anchors and ids": (
        {
            "$id": "http://x/root",
            "$defs": {
                "q": {"$id": "q.json", "$defs": {"in": {"const": 2}}, "$ref": "#/$defs/in"},
                "w": {"$anchor": "here", "const": 3},
            },
            "anyOf": [{"$ref": "q.json"}, {"$ref": "#here"}],
        },
        [2, 3],
        [1],
    ),
    "siblings of a reference": ({"$defs": {"n": {"type": "integer"}}, "$ref": "#/$defs/n", "minimum": 5}, [5, 60], [4, "a"]),
    "a reference that meets itself": (
        {
            "$defs": {
                "n": {
                    "type": "object",
                    "properties": {"next": {"allOf": [{"$ref": "#/$defs/n"}, {"required": ["next"]}]}, "v": {"const": 1}},
                }
            },
            "$ref": "#/$defs/n",
        },
        [{"v": 1}, {}],
        [{"next": {}}, {"v": 2}],
    ),
    "null or text": ({"anyOf": [{"type": "string"}, {"type": "null"}]}, ["a", None], [1]),
    "awkward values": ({"enum": ['q"', "b\\", "😀", "a\nb", ""]}, ['q"', "b\\", "😀", "a\nb", ""], ["q", "b"]),
    "const": ({"const": {"a": [1, None]}}, [{"a": [1, None]}], [{"a": [1]}, {}]),
    "integers across zero": ({"type": "integer", "minimum": -3, "maximum": 12}, [-3, 0, 12], [-4, 13, 1.5]),
    "safe integers": (
        {"type": "integer", "minimum": -9007199254740991, "maximum": 9007199254740991},
        [9007199254740991, -9007199254740991, 0],
        [9007199254740992],
    ),
    "int64": ({"type": "integer", "format": "int64"}, [0, -(2**60)], [2**64]),
    "exclusive bounds": ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, [0.5], [0, 1]),
    "bounds of draft 4": (
        {"type": "integer", "minimum": 1, "exclusiveMinimum": True, "maximum": 3, "exclusiveMaximum": False},
        [2, 3],
        [1, 4],
    ),
    "multiples": ({"type": "integer", "multipleOf": 5}, [10, -5, 0], [7]),
    "optional only": (
        {"type": "object", "properties": {"a": {}, "b": {}}, "additionalProperties": False},
        [{}, {"a": 1}, {"b": 1}, {"a": 1, "b": 2}],
        [{"c": 1}],
    ),
    "no type": ({"properties": {"a": {"type": "integer"}}, "required": ["a"]}, [{"a": 1}], [1, {}, {"a": "x"}]),
    "lengths": ({"type": "string", "minLength": 2, "maxLength": 3}, ["ab", "😀é漢"], ["a", "abcd"]),
    "pattern": ({"type": "string", "pattern": "^a+$", "maxLength": 3}, ["a", "aaa"], ["aaaa", "b"]),
    "format and pattern": ({"type": "string", "format": "date", "pattern": "^2024"}, ["2024-02-29"], ["2023-01-01", "2024"]),
    "items of the older drafts": ({"items": [{"const": 1}], "additionalItems": {"const": 2}}, [[1, 2, 2], [], [1]], [[2]]),
    "contains": ({"type": "array", "contains": {"const": 9}, "items": {"type": "integer"}}, [[9], [9, 1]], [[], [1]]),
    "unique values": (
        {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True},
        [[], ["c", "a"], ["b", "a", "c"]],
        [["a", "a"]],
    ),
    "unique truths": (
        {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True, "minItems": 1},
        [[True, False], [False]],
        [[True, True], []],
    ),
    "names": ({"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}}, [{"ab": 1}, {}], [{"A": 1}]),
    "listed names": (
        {"type": "object", "propertyNames": {"enum": ["a", "b"]}, "additionalProperties": {"type": "integer"}},
        [{"b": 1}],
        [{"c": 1}],
    ),
    "pattern properties": (
        {"type": "object", "patternProperties": {"^s_": {"type": "string"}}, "additionalProperties": False},
        [{"s_a": "x"}],
        [{"s_a": 1}, {"a": "x"}],
    ),
    "patterns that overlap": (
        {"type": "object", "patternProperties": {"a": {"type": "integer"}, "b": {"minimum": 3}}, "additionalProperties": False},
        [{"a": 5}],
        [{"a": "x"}, {"ab": 1}],
    ),
    "at least one property": ({**AB, "minProperties": 1}, [{"a": 1}, {"b": 1}, {"a": 1, "b": 2}], [{}]),
    "at most one property": ({**AB, "maxProperties": 1}, [{}, {"a": 1}, {"b": 2}], [{"a": 1, "b": 2}]),
    "a map with a size": (
        {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2},
        [{"x": 1, "y": 2}, {}],
        [{"x": 1, "y": 2, "z": 3}],
    ),
    "dependent properties": ({**AB, "dependentRequired": {"a": ["b"]}}, [{}, {"b": 1}, {"a": 1, "b": 1}], [{"a": 1}]),
    "dependencies of draft 7": (
        {
            "type": "object",
            "properties": AB["properties"],
            "dependencies": {"a": {"properties": {"b": {"minimum": 5}}, "required": ["b"]}},
        },
        [{"b": 1}, {"a": 1, "b": 5}],
        [{"a": 1}, {"a": 1, "b": 4}],
    ),
    "one of different types": ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, ["a", 1], [None]),
    "one of two requirements": ({**AB, "oneOf": A_OR_B}, [{"a": 1}, {"b": 1}], [{}, {"a": 1, "b": 1}]),
    "one of, told apart by a constant": (
        {
            "oneOf": [
                {"type": "object", "properties": {"t": {"const": kind}, "v": {"type": kind}}, "required": ["t", "v"]}
                for kind in ("string", "integer")
            ]
        },
        [{"t": "string", "v": "x"}, {"t": "integer", "v": 1}],
        [{"t": "string", "v": 1}, {"t": "number", "v": 1}],
    ),
    "one of, told apart without being required": (
        {"oneOf": [{"type": "object", "properties": {"t": {"const": kind}}} for kind in ("x", "y")]},
        [{"t": "x"}, {"t": "y"}],
        [{}, {"t": "z"}],
    ),
    "one of, closed objects": (
        {
            "oneOf": [
                {"type": "object", "properties": {name: {"type": "integer"}}, "additionalProperties": False}
                for name in ("a", "b")
            ]
        },
        [{"a": 1}, {"b": 1}],
        [{}, {"a": 1, "b": 1}],
    ),
    "not a type": ({"not": {"type": ["object", "array", "null"]}}, [1, "a", True], [{}, [], None]),
    "not some texts": ({"type": "string", "not": {"enum": ["yes", "no"]}}, ["y", "yess", "", "maybe"], ["yes", "no"]),
    "not some numbers": ({"type": "integer", "not": {"enum": [0, 5]}}, [1, -1, 6, 4], [0, 5]),
    "not both": ({**AB, "not": {"required": ["a", "b"]}}, [{}, {"a": 1}, {"b": 1}], [{"a": 1, "b": 1}]),
    "neither": ({**AB, "not": {"anyOf": A_OR_B}}, [{}], [{"a": 1}, {"b": 1}]),
    "not not": ({"not": {"not": {"const": 3}}}, [3], [4]),
    "if, then, else": (
        {
            **AB,
            "if": {"properties": {"a": {"const": 1}}, "required": ["a"]},
            "then": {"required": ["b"]},
            "else": {"properties": {"b": False}},
        },
        [{"a": 1, "b": 2}, {"a": 2}, {}],
        [{"a": 1}, {"a": 2, "b": 1}, {"b": 1}],
    ),
    "several conditions": (
        KINDS,
        [{"kind": "x", "n": 1}, {"kind": "y", "s": "a"}, {"kind": "z", "n": 1, "s": "a"}],
        [{"kind": "x"}, {"kind": "y"}, {"kind": "x", "n": 1, "s": "a"}],
    ),
    "all of": (
        {"allOf": [AB, {"required": ["a"]}, {"properties": {"a": {"minimum": 3}}}]},
        [{"a": 3}, {"a": 4, "b": 1}],
        [{"a": 1}, {"b": 1}, {"a": 3, "c": 1}],
    ),
    "annotations and unknown words": (
        {"type": "integer", "title": "x", "default": "y", "nullable": True, "x-y": [], "deprecated": True},
        [1],
        [None],
    ),
    "formats that say how to show": ({"type": "string", "format": "password"}, ["x"], [1]),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    schema, good, bad = CASES[name]
    constraint = compiled(schema, strict=True)
    assert constraint.warnings == ()
    assert [value for value in good if not engine_accepts(constraint.compiled, dump(value))] == []
    assert [value for value in bad if engine_accepts(constraint.compiled, dump(value))] == []


def test_no_blanks_between_the_parts() -> None:
    grammar = compiled({"type": "object"}).compiled
    assert engine_accepts(grammar, '{"a":[1,2]}')
    assert not engine_accepts(grammar, '{ "a": 1}')


LOSSES = {
    "lookahead": ({"properties": {"e": {"type": "string", "pattern": "^(?=a)b$"}}}, "#/properties/e", "pattern"),
    "unknown format": ({"items": {"type": "string", "format": "topic"}}, "#/items", "format"),
    "unique items": ({"properties": {"l": {"type": "array", "uniqueItems": True}}}, "#/properties/l", "uniqueItems"),
    "not a pattern": ({"properties": {"a~/b": {"not": {"pattern": "x"}}}}, "#/properties/a~0~1b", "not"),
    "remote": ({"anyOf": [{"$ref": "http://x/y.json"}, {"type": "null"}]}, "#/anyOf/0", "$ref"),
    "branches that overlap": ({"oneOf": [{"type": "string", "pattern": "a"}, {"type": "string", "pattern": "b"}]}, "#", "oneOf"),
    "strange multiples": ({"type": "number", "multipleOf": 1e-9}, "#", "multipleOf"),
    "counted kinds": ({"type": "array", "contains": {"const": 1}, "maxContains": 2}, "#", "maxContains"),
    "what others left": (
        {"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False, "type": "object"},
        "#",
        "unevaluatedProperties",
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_what_cannot_be_enforced_is_named(name: str) -> None:
    schema, pointer, keyword = LOSSES[name]
    constraint = compiled(schema)
    assert [warning for warning in constraint.warnings if warning.startswith(f"{pointer}: '{keyword}'")], constraint.warnings
    with pytest.raises(InvalidRequest) as caught:
        compiled(schema, strict=True)
    assert f"{pointer}: '{keyword}'" in caught.value.message


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "hiccup"}, "#/type: 'hiccup' is not a type"),
        ({"properties": {"a": {"type": 5}}}, "#/properties/a/type: a list is expected"),
        ({"properties": {"a": 7}}, "#/properties/a: a schema is an object, true or false"),
        ({"properties": []}, "#/properties: an object is expected"),
        ({"minLength": -1, "type": "string"}, "#/minLength: a whole number"),
        ({"minimum": "x", "type": "number"}, "#/minimum: a number is expected"),
        ({"required": "a"}, "#/required: a list is expected"),
        ({"pattern": 5}, "#/pattern: a text is expected"),
        ({"$ref": 5}, "#/$ref: a reference is a text"),
        ({"$ref": "#"}, "refers to itself"),
        ({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, "refers to itself"),
        ({"type": "object", "properties": {"n": {"$ref": "#"}}, "required": ["n"]}, "no value of any finite size"),
        ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "the schema cannot be used"),
        ({"enum": []}, "the schema cannot be used"),
        ({"not": {}}, "no value of any finite size"),
        (False, "no value of any finite size"),
    ],
)
def test_what_is_no_schema_is_refused_with_its_place(schema: Any, words: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        compiled(schema)
    assert words in caught.value.message
    assert caught.value.param == "json_schema"


def test_a_branch_without_end_is_left_out() -> None:
    schema = {
        "$defs": {"n": {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "required": ["n"]}},
        "anyOf": [{"$ref": "#/$defs/n"}, {"const": 1}],
    }
    grammar = compiled(schema).compiled
    assert engine_accepts(grammar, "1") and not engine_accepts(grammar, '{"n":1}')


def test_one_part_too_complex_does_not_cost_the_others() -> None:
    """Alternatives that multiply beyond all bounds are given up; types and names stay."""
    options = [{"anyOf": [{"properties": {f"p{i}": {"const": j}}, "required": [f"p{i}"]} for j in range(8)]} for i in range(12)]
    constraint = compiled({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "allOf": options})
    assert any("'allOf' is not fully enforced" in warning for warning in constraint.warnings)
    assert engine_accepts(constraint.compiled, '{"a":1}')
    assert not engine_accepts(constraint.compiled, '{"a":"x"}')
