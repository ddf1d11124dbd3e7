"""Hermes, Qwen 2.5 and Qwen 3."""

from __future__ import annotations

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.description import Thinking
from puna.chat.formats.families.hermes import hermes
from tests.unit.chat.formats.harness import Case, Family

PARIS = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
NOW = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
CITY = ("get_weather", '{"city": "Paris"}')

CASES = (
    Case("text", "Hello there.\n", content="Hello there.\n"),
    Case("call", PARIS, calls=[CITY]),
    Case("parallel", f"{PARIS}\n{NOW}", calls=[CITY, ("now", "{}")]),
    Case("text-before", f"Let me look.\n\n{PARIS}", content="Let me look.", calls=[CITY]),
    Case("text-after", f"{PARIS}\n\nDone.", content="Done.", calls=[CITY], well_formed=False),
    Case("text-around", f"One.\n{PARIS}\nTwo.", content="One.\nTwo.", calls=[CITY], well_formed=False),
    Case("thoughts", f"<think>\nHm, <tool_call>?\n</think>\n\n{PARIS}", reasoning="Hm, <tool_call>?", calls=[CITY]),
    Case("thoughts-text", "<think>\nHm.\n</think>\n\nYes.", reasoning="Hm.", content="Yes."),
    Case("no-thoughts", "<think>\n\n</think>\n\nYes.", content="Yes."),
    Case("opened", f"Hm.\n</think>\n\n{PARIS}", reasoning="Hm.", calls=[CITY], prompt="<|im_start|>assistant\n<think>\n"),
    Case(
        "nested",
        PARIS.replace('"}', '", "where": {"lat": 1.5, "names": ["a", "{b"]}}'),
        calls=[("get_weather", '{"city": "Paris", "where": {"lat": 1.5, "names": ["a", "{b"]}}')],
    ),
    Case(
        "escapes",
        '<tool_call>\n{"name": "run_code", "arguments": {"code": "print(\\"ü\\\\n\\")\\n\\t😀 \\u00e9"}}\n</tool_call>',
        calls=[("run_code", {"code": 'print("ü\\n")\n\t😀 é'})],
        well_formed=False,  # the grammar writes characters themselves, where escapes are not needed
    ),
    Case("empty-arguments", NOW, calls=[("now", "{}")]),
    Case(
        "tag-in-string",
        '<tool_call>\n{"name": "run_code", "arguments": {"code": "</tool_call> <tool_call>"}}\n</tool_call>',
        calls=[("run_code", '{"code": "</tool_call> <tool_call>"}')],
    ),
    Case("no-blanks", '<tool_call>{"name":"now","arguments":{}}</tool_call>', calls=[("now", "{}")], well_formed=False),
    Case(
        "arguments-first",
        '<tool_call>\n{"arguments": {"city": "Paris"}, "name": "get_weather"}\n</tool_call>',
        calls=[CITY],
        well_formed=False,
    ),
    Case(
        "arguments-as-string",
        '<tool_call>\n{"name": "get_weather", "arguments": "{\\"city\\": \\"Paris\\"}"}\n</tool_call>',
        calls=[CITY],
        well_formed=False,
    ),
    Case("one-bracket-more", PARIS.replace("}}", "}}}"), calls=[CITY], well_formed=False),
    Case("no-json", "<tool_call>\nsoon\n</tool_call>", content="\nsoon\n", well_formed=False),
    Case("no-name", '<tool_call>\n{"city": 1}\n</tool_call> end', content='\n{"city": 1}\n end', well_formed=False),
    Case(
        "breaks", '<tool_call>\n{"name": "now", "arguments": {} oops}\n</tool_call>\nOh.', content="Oh.", calls=[("now", "{}")],
        well_formed=False,
    ),
    Case("wrong-json", PARIS.replace('"Paris"', "Paris"), calls=[("get_weather", '{"city": Paris}')], well_formed=False),
    Case("not-closed", PARIS.removesuffix("\n</tool_call>"), calls=[CITY], well_formed=False),
    Case("mark-like-text", "a < b, <tool> and <tool_cal", content="a < b, <tool> and <tool_cal"),
    Case("half-a-mark", "Well <tool_cal", content="Well ", cut=True),
    Case("closes-nothing", "Well</tool_call>.", content="Well.", well_formed=False),
    Case("no-tools", PARIS, content=PARIS, tools=()),
    Case("forbidden", "Not <tool_call today.", content="Not <tool_call today.", choice="none"),
)  # fmt: skip

FAMILY = Family(DescribedFormat(hermes(Thinking())), CASES)
