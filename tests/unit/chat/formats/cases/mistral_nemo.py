"""Mistral Nemo."""

from __future__ import annotations

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.families.mistral import NEMO
from tests.unit.chat.formats.harness import Case, Family

PARIS = '{"name": "get_weather", "arguments": {"city": "Paris"}, "id": "aB3dE5gH7"}'
NOW = '{"name": "now", "arguments": {}, "id": "123456789"}'
CITY = ("get_weather", '{"city": "Paris"}')

FAMILY = Family(
    DescribedFormat(NEMO),
    (
        Case("text", "Hello [you].", content="Hello [you]."),
        Case("call", f"[TOOL_CALLS][{PARIS}]", calls=[CITY]),
        Case("parallel", f"[TOOL_CALLS][{PARIS}, {NOW}]", calls=[CITY, ("now", "{}")]),
        Case("blanks", f"[TOOL_CALLS] [\n{PARIS},\n{NOW}\n]", calls=[CITY, ("now", "{}")], well_formed=False),
        Case("text-before", f"Let me look.\n\n[TOOL_CALLS][{PARIS}]", content="Let me look.", calls=[CITY]),
        Case("text-after", f"[TOOL_CALLS][{PARIS}]\nDone.", content="Done.", calls=[CITY], well_formed=False),
        Case("no-thoughts", "[THINK]a[/THINK]b", content="[THINK]a[/THINK]b"),
        Case(
            "nested",
            "[TOOL_CALLS][" + PARIS.replace("}", ', "where": {"lat": 1.5, "names": ["]", "{"]}}', 1) + "]",
            calls=[("get_weather", '{"city": "Paris", "where": {"lat": 1.5, "names": ["]", "{"]}}')],
        ),
        Case(
            "escapes",
            '[TOOL_CALLS][{"name": "run_code", "arguments": {"code": "\\"ü\\" 😀\\\\"}, "id": "aB3dE5gH7"}]',
            calls=[("run_code", {"code": '"ü" 😀\\'})],
        ),
        Case("empty-arguments", f"[TOOL_CALLS][{NOW}]", calls=[("now", "{}")]),
        Case(
            "tag-in-string",
            f"[TOOL_CALLS][{PARIS.replace('Paris', '[TOOL_CALLS][{}]')}]",
            calls=[("get_weather", '{"city": "[TOOL_CALLS][{}]"}')],
        ),
        Case("no-id", '[TOOL_CALLS][{"name": "now", "arguments": {}}]', calls=[("now", "{}")], well_formed=False),
        Case(
            "id-first",
            '[TOOL_CALLS][{"id": "aB3dE5gH7", "name": "now", "arguments": {}}]',
            calls=[("now", "{}")],
            ids=["aB3dE5gH7"],
            well_formed=False,
        ),
        Case("wrong-json", '[TOOL_CALLS][{"name": "now", "arguments": {1}}]', calls=[("now", "{1}")], well_formed=False),
        Case("no-json", "[TOOL_CALLS]soon", content="soon", well_formed=False),
        Case("half-a-mark", "Well [TOOL_", content="Well ", cut=True),
    ),
)
