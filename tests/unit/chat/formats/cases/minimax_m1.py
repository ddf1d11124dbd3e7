"""MiniMax M1."""

from __future__ import annotations

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.families.minimax import MINIMAX_M1
from tests.unit.chat.formats.harness import Case, Family


def section(*calls: str) -> str:
    return "<tool_calls>\n" + "\n".join(calls) + "\n</tool_calls>"


PARIS, NOW = '{"name": "get_weather", "arguments": {"city": "Paris"}}', '{"name": "now", "arguments": {}}'
CITY = ("get_weather", '{"city": "Paris"}')
NESTED = '{"city": "", "where": {"lat": 1, "names": ["}", "\\n</tool_calls>"]}}'

FAMILY = Family(
    DescribedFormat(MINIMAX_M1),
    (
        Case("text", "<tool> {} </tool>", content="<tool> {} </tool>"),
        Case("call", section(PARIS), calls=[CITY]),
        Case("parallel", section(PARIS, NOW), calls=[CITY, ("now", "{}")]),
        Case("text-before", f"Let me look.\n{section(PARIS)}", content="Let me look.", calls=[CITY]),
        Case("text-after", f"{section(PARIS)}\nDone.", content="Done.", calls=[CITY], well_formed=False),
        Case("thoughts", f"<think>\nHm.\n</think>\n\n{section(PARIS)}", reasoning="Hm.", calls=[CITY]),
        Case("thoughts-text", "<think>Hm.</think>\n\nYes.", reasoning="Hm.", content="Yes."),
        Case("nested", section(PARIS.replace('{"city": "Paris"}', NESTED)), calls=[("get_weather", NESTED)]),
        Case(
            "escapes",
            section('{"name": "run_code", "arguments": {"code": "\\"ü\\"\\n\\\\ 😀"}}'),
            calls=[("run_code", {"code": '"ü"\n\\ 😀'})],
        ),
        Case("empty-arguments", section(NOW), calls=[("now", "{}")]),
        Case(
            "tag-in-string",
            section(PARIS.replace("Paris", "<tool_calls>")),
            calls=[("get_weather", '{"city": "<tool_calls>"}')],
        ),
        Case("list", f"<tool_calls>\n[{PARIS}, {NOW}]\n</tool_calls>", content=f"[{PARIS}, {NOW}]\n", well_formed=False),
        Case("wrong-json", section(NOW.replace("{}", "{1}")), calls=[("now", "{1}")], well_formed=False),
        Case("no-name", section('{"nom": "now"}'), content='{"nom": "now"}\n', well_formed=False),
        Case("half-a-mark", "Well <tool_cal", content="Well ", cut=True),
    ),
)
