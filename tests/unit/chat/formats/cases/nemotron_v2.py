"""Nemotron Nano v2."""

from __future__ import annotations

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.families.nemotron import NEMOTRON_V2
from tests.unit.chat.formats.harness import Case, Family


def section(*calls: str) -> str:
    return f"<TOOLCALL>[{', '.join(calls)}]</TOOLCALL>"


PARIS, NOW = '{"name": "get_weather", "arguments": {"city": "Paris"}}', '{"name": "now", "arguments": {}}'
CITY = ("get_weather", '{"city": "Paris"}')
NESTED = '{"city": "", "where": {"lat": 1, "names": ["}", "]</TOOLCALL>"]}}'

FAMILY = Family(
    DescribedFormat(NEMOTRON_V2),
    (
        Case("text", "<TOOL> [1]", content="<TOOL> [1]"),
        Case("call", section(PARIS), calls=[CITY]),
        Case("parallel", section(PARIS, NOW), calls=[CITY, ("now", "{}")]),
        Case("text-before", f"Let me look.\n{section(PARIS)}", content="Let me look.", calls=[CITY]),
        Case("text-after", f"{section(PARIS)}\nDone.", content="Done.", calls=[CITY], well_formed=False),
        Case(
            "thoughts",
            f"Hm.\n</think>\n\n{section(PARIS)}\n",
            reasoning="Hm.",
            calls=[CITY],
            prompt="Assistant\n<think>\n",
            well_formed=False,
        ),
        Case("thoughts-text", "Hm.\n</think>\n\nYes.\n", reasoning="Hm.", content="Yes.", prompt="Assistant\n<think>\n"),
        Case("closed", "Yes.", content="Yes.", prompt="Assistant\n<think></think>"),
        Case("nested", section(PARIS.replace('{"city": "Paris"}', NESTED)), calls=[("get_weather", NESTED)]),
        Case(
            "escapes",
            section('{"name": "run_code", "arguments": {"code": "\\"ü\\"\\n\\\\ 😀"}}'),
            calls=[("run_code", {"code": '"ü"\n\\ 😀'})],
        ),
        Case("empty-arguments", section(NOW), calls=[("now", "{}")]),
        Case(
            "tag-in-string",
            section(PARIS.replace("Paris", "<TOOLCALL>[")),
            calls=[("get_weather", '{"city": "<TOOLCALL>["}')],
        ),
        Case("blanks", f"<TOOLCALL>\n[\n  {PARIS} ,\n  {NOW}\n]\n</TOOLCALL>", calls=[CITY, ("now", "{}")], well_formed=False),
        Case("no-list", f"<TOOLCALL>{PARIS}</TOOLCALL>", calls=[CITY], well_formed=False),
        Case(
            "as-text", section(PARIS.replace('{"city": "Paris"}', '"{\\"city\\": \\"Paris\\"}"')), calls=[CITY], well_formed=False
        ),
        Case("wrong-json", section(NOW.replace("{}", "{1}")), calls=[("now", "{1}")], well_formed=False),
        Case("no-call", "<TOOLCALL>soon</TOOLCALL>", content="soon", well_formed=False),
        Case("half-a-mark", "Well <TOOLC", content="Well", cut=True),
    ),
    prompt="Assistant\n<think>\n",
)
