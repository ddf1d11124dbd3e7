"""Mistral Small 3.2."""

from __future__ import annotations

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.families.mistral import mistral
from tests.unit.chat.formats.harness import Case, Family

PARIS = '[TOOL_CALLS]get_weather[CALL_ID]aB3dE5gH7[ARGS]{"city": "Paris"}'
NOW = "[TOOL_CALLS]now[CALL_ID]123456789[ARGS]{}"
CITY = ("get_weather", '{"city": "Paris"}')
ID, OTHER = "aB3dE5gH7", "123456789"

FAMILY = Family(
    DescribedFormat(mistral("[CALL_ID]")),
    (
        Case("text", "Hello [you].", content="Hello [you]."),
        Case("call", PARIS, calls=[CITY], ids=[ID]),
        Case("parallel", PARIS + NOW, calls=[CITY, ("now", "{}")], ids=[ID, OTHER]),
        Case("text-before", f"Let me look. {PARIS}", content="Let me look.", calls=[CITY], ids=[ID]),
        Case("text-after", f"{PARIS}\nDone.", content="Done.", calls=[CITY], ids=[ID], well_formed=False),
        Case("no-thoughts", f"[THINK]Hm.[/THINK]{PARIS}", content="[THINK]Hm.[/THINK]", calls=[CITY], ids=[ID]),
        Case(
            "nested",
            PARIS.replace("}", ', "where": {"lat": 1.5, "names": ["}", "[ARGS]"]}}'),
            calls=[("get_weather", '{"city": "Paris", "where": {"lat": 1.5, "names": ["}", "[ARGS]"]}}')],
        ),
        Case("escapes", PARIS.replace("Paris", "ü\\n😀"), calls=[("get_weather", {"city": "ü\n😀"})]),
        Case("empty-arguments", NOW, calls=[("now", "{}")], ids=[OTHER]),
        Case(
            "tag-in-string", PARIS.replace("Paris", "[CALL_ID][ARGS]{}"), calls=[("get_weather", '{"city": "[CALL_ID][ARGS]{}"}')]
        ),
        Case("no-id", "[TOOL_CALLS]now[ARGS]{}", calls=[("now", "{}")], well_formed=False),
        Case("no-name", "[TOOL_CALLS][CALL_ID]123456789[ARGS]{}", content="123456789{}", well_formed=False),
        Case("wrong-json", NOW.replace("{}", "{,}"), calls=[("now", "{,}")], well_formed=False),
        Case("half-a-mark", "Well [TOOL_", content="Well ", cut=True),
    ),
)
