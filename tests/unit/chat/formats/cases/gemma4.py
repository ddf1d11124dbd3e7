"""Gemma 4."""

from __future__ import annotations

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.families.gemma4 import GEMMA4
from tests.unit.chat.formats.harness import Case, Family

Q = '<|"|>'


def call(name: str, arguments: str = "") -> str:
    return f"<|tool_call>call:{name}{{{arguments}}}<tool_call|>"


def text(value: str) -> str:
    return Q + value + Q


PARIS, NOW = call("get_weather", f"city:{text('Paris')},days:2,exact:true"), call("now")
CITY = ("get_weather", '{"city": "Paris", "days": 2, "exact": true}')
NESTED = f"city:{text('')},where:{{lat:-1.5,names:[{text('}')},{text('<tool_call|>')}]}}"
ODD = '"ü"\\n\t😀\n<|" |> {a:1}'

FAMILY = Family(
    DescribedFormat(GEMMA4),
    (
        Case("text", "call:me{} <|tool", content="call:me{} <|tool"),
        Case("call", PARIS, calls=[CITY]),
        Case("parallel", PARIS + NOW, calls=[CITY, ("now", "{}")]),
        Case("text-before", f"Let me look.\n{PARIS}", content="Let me look.", calls=[CITY]),
        Case("text-after", f"{PARIS}Done.", content="Done.", calls=[CITY], well_formed=False),
        Case("thoughts", f"<|channel>thought\nHm.\n<channel|>{PARIS}", reasoning="Hm.", calls=[CITY]),
        Case("thoughts-text", "<|channel>thought\nHm.<channel|>Yes.", reasoning="Hm.", content="Yes."),
        Case(
            "thoughts-again",
            f"<|channel>thought\nHm.<channel|>So.<|channel>thought\nYes.<channel|>{NOW}",
            reasoning="Hm.\n\nYes.",
            content="So.",
            calls=[("now", "{}")],
        ),
        Case("closed", "Yes.", content="Yes.", prompt="<|turn>model\n<|channel>thought\n<channel|>"),
        Case("stray-end", "Yes.<channel|>", content="Yes."),
        Case(
            "nested",
            call("get_weather", NESTED),
            calls=[("get_weather", '{"city": "", "where": {"lat": -1.5, "names": ["}", "<tool_call|>"]}}')],
        ),
        Case("escapes", call("run_code", f"code:{text(ODD)}"), calls=[("run_code", {"code": ODD})]),
        Case("empty-arguments", NOW, calls=[("now", "{}")]),
        Case(
            "empty-list",
            call("get_weather", f"city:{text('A')},where:{{lat:1,names:[]}}"),
            calls=[("get_weather", {"city": "A", "where": {"lat": 1, "names": []}})],
        ),
        Case(
            "tag-in-string",
            call("run_code", f"code:{text('<|tool_call>call:now{}')}"),
            calls=[("run_code", '{"code": "<|tool_call>call:now{}"}')],
        ),
        Case(
            "blanks-and-quotes",
            '<|tool_call> call: get_weather {"city" : "Paris" , <|"|>days<|"|>: 2, exact: None,}<tool_call|>',
            calls=[("get_weather", {"city": "Paris", "days": 2, "exact": None})],
            well_formed=False,
        ),
        Case("wrong-json", call("now", "x:a b,y:[1"), calls=[("now", '{"x": "a b", "y": [1]')], well_formed=False),
        Case("no-json", call("now", "x:NaN,y:-Infinity"), calls=[("now", '{"x": "NaN", "y": "-Infinity"}')], well_formed=False),
        Case("bare-string", call("now", "x:New York"), calls=[("now", '{"x": "New York"}')], well_formed=False),
        Case("no-call", "<|tool_call>soon<tool_call|>", content="soon", well_formed=False),
        Case("half-a-mark", "Well <|tool_ca", content="Well ", cut=True),
    ),
    control=("<|tool_call>", "<tool_call|>", "<|channel>", "<channel|>", Q),
)
