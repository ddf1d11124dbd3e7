"""Devstral and Ministral."""

from __future__ import annotations

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.families.mistral import mistral
from tests.unit.chat.formats.harness import Case, Family

PARIS = '[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}'
NOW = "[TOOL_CALLS]now[ARGS]{}"
CITY = ("get_weather", '{"city": "Paris"}')

FAMILY = Family(
    DescribedFormat(mistral("[THINK]")),
    (
        Case("text", "Hello [you].", content="Hello [you]."),
        Case("call", PARIS, calls=[CITY]),
        Case("parallel", PARIS + NOW, calls=[CITY, ("now", "{}")]),
        Case("text-before", f"Let me look. {PARIS}", content="Let me look.", calls=[CITY]),
        Case("text-after", f"{PARIS}\nDone.", content="Done.", calls=[CITY], well_formed=False),
        Case("thoughts", f"[THINK]Hm [TOOL_CALLS] hm.[/THINK]{PARIS}", reasoning="Hm [TOOL_CALLS] hm.", calls=[CITY]),
        Case("thoughts-text", "[THINK]Hm.[/THINK]Yes.", reasoning="Hm.", content="Yes."),
        Case(
            "nested",
            PARIS.replace("}", ', "where": {"lat": 1.5, "names": ["}", "[ARGS]"]}}'),
            calls=[("get_weather", '{"city": "Paris", "where": {"lat": 1.5, "names": ["}", "[ARGS]"]}}')],
        ),
        Case("escapes", '[TOOL_CALLS]run_code[ARGS]{"code": "\\"ü\\"\\n😀"}', calls=[("run_code", {"code": '"ü"\n😀'})]),
        Case("empty-arguments", NOW, calls=[("now", "{}")]),
        Case(
            "tag-in-string",
            '[TOOL_CALLS]run_code[ARGS]{"code": "[TOOL_CALLS]now[ARGS]{}"}',
            calls=[("run_code", '{"code": "[TOOL_CALLS]now[ARGS]{}"}')],
        ),
        Case("no-mark", '[TOOL_CALLS]get_weather{"city": "Paris"}', calls=[CITY], well_formed=False),
        Case("wrong-json", "[TOOL_CALLS]now[ARGS]{1, }", calls=[("now", "{1, }")], well_formed=False),
        Case("no-json", "[TOOL_CALLS]now[ARGS]soon", calls=[("now", "{}")], well_formed=False),
        Case("no-name", "[TOOL_CALLS][ARGS]{}", content="{}", well_formed=False),
        Case("half-a-mark", "Well [TOOL_", content="Well ", cut=True),
    ),
)
