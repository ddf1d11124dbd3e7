"""Kimi K2 and K2-Thinking."""

from __future__ import annotations

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.description import Thinking
from puna.chat.formats.families.kimi import kimi_k2
from tests.unit.chat.formats.harness import Case, Family


def call(id: str, arguments: str) -> str:
    return f"<|tool_call_begin|>{id}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>"


def section(*calls: str) -> str:
    return f"<|tool_calls_section_begin|>{''.join(calls)}<|tool_calls_section_end|>"


PARIS, NOW = call("functions.get_weather:0", '{"city": "Paris"}'), call("functions.now:1", "{}")
CITY = ("get_weather", '{"city": "Paris"}')
NESTED = '{"city": "", "where": {"lat": -1.5, "names": ["}<|tool_call_end|>", "{"]}}'

FAMILY = Family(
    DescribedFormat(kimi_k2(Thinking())),
    (
        Case("text", "1 <| 2.", content="1 <| 2."),
        Case("call", section(PARIS), calls=[CITY], ids=["functions.get_weather:0"]),
        Case(
            "parallel",
            section(PARIS, NOW),
            calls=[CITY, ("now", "{}")],
            ids=["functions.get_weather:0", "functions.now:1"],
        ),
        Case("text-before", f"Let me look.{section(PARIS)}", content="Let me look.", calls=[CITY]),
        Case("text-after", f"{section(PARIS)} Done.", content="Done.", calls=[CITY], well_formed=False),
        Case("thoughts", f"<think> Hm. </think>{section(PARIS)}", reasoning="Hm.", calls=[CITY]),
        Case("thoughts-text", "<think>Hm.</think>Yes.", reasoning="Hm.", content="Yes."),
        Case("call-in-thoughts", f"<think>Hm.{section(PARIS)}", reasoning="Hm.", calls=[CITY]),
        Case("nested", section(call("functions.get_weather:12", NESTED)), calls=[("get_weather", NESTED)]),
        Case(
            "escapes",
            section(call("functions.run_code:3", '{"code": "\\"ü\\"\\n\\\\ 😀"}')),
            calls=[("run_code", {"code": '"ü"\n\\ 😀'})],
        ),
        Case("empty-arguments", section(NOW), calls=[("now", "{}")]),
        Case(
            "tag-in-string",
            section(call("functions.run_code:0", '{"code": "<|tool_calls_section_end|>"}')),
            calls=[("run_code", '{"code": "<|tool_calls_section_end|>"}')],
        ),
        Case("no-number", section(call("functions.now", "{}")), calls=[("now", "{}")], ids=["functions.now"], well_formed=False),
        Case("bare-name", section(call("now", "{}")), calls=[("now", "{}")], well_formed=False),
        Case("wrong-json", section(call("functions.now:0", "{1}")), calls=[("now", "{1}")], well_formed=False),
        Case("no-call", section("soon"), content="soon", well_formed=False),
        Case("half-a-mark", "Well <|tool_calls_sec", content="Well ", cut=True),
    ),
)
