"""Qwen 3-Coder, Qwen 3.5 and Nemotron 3."""

from __future__ import annotations

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.description import Thinking
from puna.chat.formats.families.qwen_xml import qwen_xml
from tests.unit.chat.formats.harness import Case, Family


def call(name: str, *arguments: str) -> str:
    inner = "".join(
        f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in zip(arguments[::2], arguments[1::2], strict=True)
    )
    return f"<tool_call>\n<function={name}>\n{inner}</function>\n</tool_call>"


PARIS = call("get_weather", "city", "Paris", "days", "2")
CITY = ("get_weather", '{"city": "Paris", "days": 2}')
NOW = call("now")

FAMILY = Family(
    DescribedFormat(qwen_xml(Thinking())),
    (
        Case("text", "Hello.", content="Hello."),
        Case("call", PARIS, calls=[CITY]),
        Case("parallel", f"{PARIS}\n{NOW}", calls=[CITY, ("now", "{}")]),
        Case("text-before", f"Let me look.\n{PARIS}", content="Let me look.", calls=[CITY]),
        Case("text-after", f"{PARIS}\nDone.", content="Done.", calls=[CITY], well_formed=False),
        Case("thoughts", f"<think>\nHm\n</think>\n\n{PARIS}", reasoning="Hm", calls=[CITY]),
        Case("opened", f"Hm\n</think>\n\n{PARIS}", reasoning="Hm", calls=[CITY], prompt="<think>\n"),
        Case(
            "nested",
            call("get_weather", "city", "", "where", '{"lat": 1.5, "names": ["a", "</function>"]}'),
            calls=[("get_weather", '{"city": "", "where": {"lat": 1.5, "names": ["a", "</function>"]}}')],
        ),
        Case(
            "escapes",
            call("run_code", "code", '\tprint("ü\\n") 😀\n\n  <b>&amp;\n'),
            calls=[("run_code", {"code": '\tprint("ü\\n") 😀\n\n  <b>&amp;\n'})],
        ),
        Case("empty-arguments", NOW, calls=[("now", "{}")]),
        Case(
            "tag-in-string",
            call("run_code", "code", "</tool_call></function><parameter=x>\n<tool_call>"),
            calls=[("run_code", '{"code": "</tool_call></function><parameter=x>\\n<tool_call>"}')],
        ),
        Case("string-that-looks-like-a-number", call("get_weather", "city", "12"), calls=[("get_weather", '{"city": "12"}')]),
        Case("enum", call("get_weather", "city", "A", "unit", "C"), calls=[("get_weather", '{"city": "A", "unit": "C"}')]),
        Case(
            "python-values", call("get_weather", "exact", "True"), calls=[("get_weather", '{"exact": true}')], well_formed=False
        ),
        Case("wrong-json", call("get_weather", "days", "two"), calls=[("get_weather", '{"days": "two"}')], well_formed=False),
        Case("unknown-key", call("get_weather", "x", "1"), calls=[("get_weather", '{"x": 1}')], well_formed=False),
        Case("no-function-end", PARIS.replace("</function>\n", ""), calls=[CITY], well_formed=False),
        Case("no-blanks", "<tool_call><function=now></function></tool_call>", calls=[("now", "{}")], well_formed=False),
        Case("no-call", "<tool_call>\nno\n</tool_call>", content="\nno\n", well_formed=False),
        Case("no-name", "<tool_call>\n<function=a b>\n</function></tool_call>x", content="\na b>\nx", well_formed=False),
        Case("half-a-mark", "Well <tool_cal", content="Well ", cut=True),
    ),
)
