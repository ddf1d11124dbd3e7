"""DeepSeek V3.1."""

from __future__ import annotations

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.families.deepseek import V3_1
from tests.unit.chat.formats.harness import Case, Family


def call(name: str, arguments: str) -> str:
    return f"<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{arguments}<｜tool▁call▁end｜>"


def calls(*texts: str) -> str:
    return f"<｜tool▁calls▁begin｜>{''.join(texts)}<｜tool▁calls▁end｜>"


PARIS, NOW = call("get_weather", '{"city": "Paris"}'), call("now", "{}")
CITY = ("get_weather", '{"city": "Paris"}')
PROMPT = "<｜Assistant｜><think>"

FAMILY = Family(
    DescribedFormat(V3_1),
    (
        Case("text", "Hello.", content="Hello.", prompt="<｜Assistant｜></think>"),
        Case("call", calls(PARIS), calls=[CITY]),
        Case("parallel", calls(PARIS, NOW, PARIS), calls=[CITY, ("now", "{}"), CITY]),
        Case("text-before", f"Let me look.{calls(PARIS)}", content="Let me look.", calls=[CITY]),
        Case("text-after", f"{calls(PARIS)} Done.", content="Done.", calls=[CITY], well_formed=False),
        Case("thoughts", f"Hm.</think>{calls(PARIS)}", reasoning="Hm.", calls=[CITY], prompt=PROMPT),
        Case("thoughts-text", "Hm.</think>Yes.", reasoning="Hm.", content="Yes.", prompt=PROMPT),
        Case("thoughts-end-in-call", f"Hm. {calls(PARIS)}", reasoning="Hm.", calls=[CITY], prompt=PROMPT, required=False),
        Case(
            "nested",
            calls(call("get_weather", '{"city": "P", "where": {"lat": -1e3, "names": ["}", "]"]}}')),
            calls=[("get_weather", '{"city": "P", "where": {"lat": -1e3, "names": ["}", "]"]}}')],
        ),
        Case("escapes", calls(call("run_code", '{"code": "a\\\\\\"b é😀"}')), calls=[("run_code", {"code": 'a\\"b é😀'})]),
        Case("empty-arguments", calls(NOW), calls=[("now", "{}")]),
        Case(
            "tag-in-string",
            calls(call("run_code", '{"code": "<｜tool▁sep｜><｜tool▁calls▁end｜>"}')),
            calls=[("run_code", '{"code": "<｜tool▁sep｜><｜tool▁calls▁end｜>"}')],
        ),
        Case("wrong-json", calls(call("now", '{"a" 1}')), calls=[("now", '{"a" 1}')], well_formed=False),
        Case("no-arguments", calls(call("now", "")), calls=[("now", "{}")], well_formed=False),
        Case("no-name", calls("<｜tool▁call▁begin｜><｜tool▁call▁end｜>") + "x", content="x", well_formed=False),
        Case("half-a-mark", "Well<｜tool▁calls▁", content="Well", cut=True),
    ),
)
