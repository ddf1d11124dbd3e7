"""MiniMax M3."""

from __future__ import annotations

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.families.minimax import MINIMAX_M3
from puna.chat.formats.plan import Tool
from tests.unit.chat.formats.harness import TOOLS, Case, Family

T = "]<]minimax[>["
POINT = {"type": "object", "properties": {"x": {"type": "number"}, "label": {"type": "string"}}, "required": ["x"]}
DRAW = Tool(
    name="draw",
    parameters={
        "type": "object",
        "properties": {
            "points": {"type": "array", "items": {"$ref": "#/$defs/point"}, "minItems": 1},
            "more": {"type": "object", "additionalProperties": {"type": "integer"}},
            "rows": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
        },
        "required": ["points"],
        "$defs": {"point": POINT},
    },
)


def element(key: str, *inner: str) -> str:
    return f"{T}<{key}>{''.join(inner)}{T}</{key}>"


def call(name: str, *inner: str) -> str:
    return f'{T}<invoke name="{name}">{"".join(inner)}{T}</invoke>\n'


def section(*calls: str) -> str:
    return f"{T}<tool_call>\n{''.join(calls)}{T}</tool_call>"


PARIS, NOW = call("get_weather", element("city", "Paris"), element("days", "2")), call("now")
CITY = ("get_weather", '{"city": "Paris", "days": 2}')
WHERE = element("where", element("lat", "1.5"), element("names", element("item", "a"), element("item", "<b>\n")))
ODD = ' "ü"\\n\t😀\n</item> ]<]mini\n'

FAMILY = Family(
    DescribedFormat(MINIMAX_M3),
    (
        Case("text", "]< and <tool_call>", content="]< and <tool_call>"),
        Case("call", section(PARIS), calls=[CITY]),
        Case("parallel", section(PARIS, NOW), calls=[CITY, ("now", "{}")]),
        Case("text-before", f"Let me look.{section(PARIS)}", content="Let me look.", calls=[CITY]),
        Case("text-after", f"{section(PARIS)}\nDone.", content="Done.", calls=[CITY], well_formed=False),
        Case("thoughts", f"<mm:think>Hm.</mm:think>{section(PARIS)}", reasoning="Hm.", calls=[CITY]),
        Case("no-thoughts", f"</mm:think>{section(PARIS)}", calls=[CITY]),
        Case("no-thoughts-text", "</mm:think>Yes.", content="Yes."),
        Case("opened", "Hm.</mm:think>Yes.", reasoning="Hm.", content="Yes.", prompt="]~b]ai\n<mm:think>"),
        Case(
            "nested",
            section(call("get_weather", element("city", ""), WHERE)),
            calls=[("get_weather", '{"city": "", "where": {"lat": 1.5, "names": ["a", "<b>\\n"]}}')],
        ),
        Case(
            "deep",
            section(
                call(
                    "draw",
                    element(
                        "points", element("item", element("x", "1"), element("label", "1")), element("item", element("x", "2"))
                    ),
                    element("rows", element("item", element("item", "1"), element("item", "2")), element("item")),
                )
            ),
            calls=[("draw", '{"points": [{"x": 1, "label": "1"}, {"x": 2}], "rows": [[1, 2], []]}')],
            tools=(*TOOLS, DRAW),
        ),
        Case(
            "as-json",
            section(call("draw", element("points", '[{"x": 1}]'), element("more", '{"a": 2}'))),
            calls=[("draw", '{"points": [{"x": 1}], "more": {"a": 2}}')],
            tools=(*TOOLS, DRAW),
            well_formed=False,
        ),
        Case(
            "unknown",
            section(call("f", element("a", element("b", "x")), element("c", element("item", "1")), element("d", ""))),
            calls=[("f", '{"a": {"b": "x"}, "c": [1], "d": ""}')],
            well_formed=False,
        ),
        Case("escapes", section(call("run_code", element("code", ODD))), calls=[("run_code", {"code": ODD})]),
        Case("empty-arguments", section(NOW), calls=[("now", "{}")]),
        Case(
            "tag-in-string",
            section(call("run_code", element("code", f"{T}</invoke>{T}</tool_call>"))),
            calls=[("run_code", f'{{"code": "{T}</invoke>{T}</tool_call>"}}')],
        ),
        Case(
            "blanks",
            section(PARIS).replace(f"{T}<", f"\n  {T}<"),
            calls=[("get_weather", {"city": "Paris\n  ", "days": 2})],
            well_formed=False,
        ),
        Case(
            "wrong-json",
            section(call("get_weather", element("days", "[2"))),
            calls=[("get_weather", '{"days": "[2"}')],
            well_formed=False,
        ),
        Case(
            "no-end",
            section(call("get_weather", WHERE).replace(f"{T}</where>{T}</invoke>\n", "")),
            calls=[("get_weather", '{"where": {"lat": 1.5, "names": ["a", "<b>\\n"]}}')],
            well_formed=False,
        ),
        Case("no-call", section("soon"), content="soon", well_formed=False),
        Case("half-a-mark", "Well ]<]minimax[>[<too", content="Well ", cut=True),
    ),
    prompt="]~b]ai\n<mm:think>",
    control=(T, "<mm:think>", "</mm:think>", "<tool_call>", "</tool_call>"),
    tools=(*TOOLS, DRAW),
    endings=[f"{T}</{key}>" for key in ("city", "code", "item", "label")],
)
