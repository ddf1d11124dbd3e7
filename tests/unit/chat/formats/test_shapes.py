"""What values look like by their schema."""

from __future__ import annotations

import json
from typing import Any

import pytest

from puna.chat.formats.plan import Tool, TurnRequest
from puna.chat.formats.shapes import MAX_SHAPES, Shape, shape_of
from puna.chat.formats.table import choose_format
from puna.errors import InvalidRequest
from puna.grammar import prepare
from tests.unit.chat.formats.harness import accepts

NODE = {"type": "object", "properties": {name: {"$ref": "#/$defs/node"} for name in "abcdefgh"}}
GEMMA, M3 = choose_format("", "gemma4"), choose_format("", "minimax-m3")
TAG = "]<]minimax[>["


def shape(own: Any, **more: Any) -> Shape:
    found = shape_of(Tool(name="f", parameters={"type": "object", "properties": {"x": own}, **more}))
    assert found is not None
    return found.fields[0][1]


def count(found: Shape) -> int:
    inner = [own for _, own, _ in found.fields] + ([found.item] if found.item else [])
    return 1 + sum(map(count, inner))


def takes(form: Any, tool: Tool, text: str) -> bool:
    constraint = form.plan(TurnRequest(tools=(tool,), choice="required")).constraint
    assert constraint is not None
    return accepts(prepare(constraint).compiled, text.encode())


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "string"}, "string"),
        ({"enum": ["a", "b"]}, "string"),
        ({"type": "integer"}, "json"),
        ({}, "any"),
        ({"type": ["string", "null"]}, "any"),
        ({"type": "object"}, "json"),
        ({"type": "object", "properties": {}}, "object"),
        ({"type": "object", "properties": {}, "additionalProperties": {"type": "string"}}, "json"),
        ({"type": "object", "properties": {}, "required": ["y"]}, "json"),
        ({"type": "array", "items": {"type": "string"}}, "list"),
        ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, "json"),
        ({"type": "array"}, "json"),
        ({"type": "array", "items": {}, "minItems": 2, "maxItems": 1}, "json"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "json"),
        ({"$ref": "#/$defs/nothing"}, "any"),
    ],
)
def test_kinds(schema: Any, kind: str) -> None:
    assert shape(schema).kind == kind


def test_references_to_themselves_end() -> None:
    found = shape({"$ref": "#/$defs/node"}, **{"$defs": {"node": NODE}})
    assert found.kind == "object" and count(found) < 10 * MAX_SHAPES


def test_open_arguments_have_no_shape() -> None:
    assert shape_of(Tool(name="f", parameters={"type": "object", "additionalProperties": True})) is None


def test_lists_have_the_length_that_the_schema_says() -> None:
    listed = {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2}
    tool = Tool(name="f", parameters={"type": "object", "properties": {"x": listed}, "required": ["x"]})
    for n in range(4):
        gemma = f"<|tool_call>call:f{{x:[{','.join('7' * n)}]}}<tool_call|>"
        items = f"{TAG}<item>7{TAG}</item>" * n
        m3 = f'{TAG}<tool_call>\n{TAG}<invoke name="f">{TAG}<x>{items}{TAG}</x>{TAG}</invoke>\n{TAG}</tool_call>'
        assert takes(GEMMA, tool, gemma) is takes(M3, tool, m3) is (n in (1, 2))


def test_members_may_be_left_out_but_those_that_are_required() -> None:
    named = {name: {"type": "integer"} for name in "abcd"}
    tool = Tool(name="f", parameters={"type": "object", "properties": named, "required": ["b"]})
    for inner, right in [
        ("b:1", True),
        ("a:1,b:2", True),
        ("b:1,d:2", True),
        ("a:1,b:2,c:3,d:4", True),
        ("a:1", False),
        ("", False),
        ("b:1,", False),
        ("a:1b:2", False),
    ]:
        assert takes(GEMMA, tool, f"<|tool_call>call:f{{{inner}}}<tool_call|>") is right


def test_arguments_without_names_are_json_or_elements() -> None:
    tool = Tool(name="f", parameters={"type": "object", "additionalProperties": {"type": "integer"}})
    assert takes(GEMMA, tool, f"<|tool_call>call:f{json.dumps({'y': 1})}<tool_call|>")
    m3 = f'{TAG}<tool_call>\n{TAG}<invoke name="f">{TAG}<y>1{TAG}</y>{TAG}</invoke>\n{TAG}</tool_call>'
    assert takes(M3, tool, m3)


@pytest.mark.parametrize("form", [GEMMA, M3])
def test_what_cannot_be_enforced_of_strict_tools_is_refused(form: Any) -> None:
    inner = {"type": "object", "properties": {"y": {"type": "string", "pattern": "^a"}}}
    tool = Tool(name="f", parameters={"type": "object", "properties": {"x": inner}}, strict=True)
    with pytest.raises(InvalidRequest, match=r"y.*pattern"):
        form.plan(TurnRequest(tools=(tool,), choice="required"))
