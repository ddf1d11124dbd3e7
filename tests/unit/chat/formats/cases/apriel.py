"""Apriel 1.5 and 1.6."""

from __future__ import annotations

from collections.abc import Sequence

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.families.apriel import APRIEL
from tests.unit.chat.formats.cases.standard import CITY, Call, standard
from tests.unit.chat.formats.harness import Case, Family


def spell(calls: Sequence[Call]) -> str:
    items = ", ".join(f'{{"name": "{name}", "arguments": {arguments}}}' for name, arguments in calls)
    return f"\n<tool_calls>[{items}]</tool_calls>"


PARIS = spell([CITY])
STEPS, ANSWER = "Here are my reasoning steps:\n", "[BEGIN FINAL RESPONSE]\n"

FAMILY = Family(
    DescribedFormat(APRIEL),
    (
        *standard(spell, "<tool_calls>"),
        Case("thoughts", f"{STEPS}Hm.\n{ANSWER}{PARIS}", reasoning="Hm.", calls=[CITY]),
        Case(
            "opened",
            f"Hm.\n{ANSWER}Let me look.{PARIS}\n[END FINAL RESPONSE]",
            reasoning="Hm.",
            content="Let me look.",
            calls=[CITY],
            prompt=f"<|begin_assistant|>\n{STEPS}",
            well_formed=False,
        ),
        Case("thoughts-text", f"{STEPS}Hm.\n{ANSWER}Yes.[END FINAL RESPONSE]", reasoning="Hm.", content="Yes."),
        Case("in-thoughts", f"{STEPS}Hm.{PARIS}", reasoning="Hm.", calls=[CITY], well_formed=False),
        Case("ids", PARIS.replace("}}", '}, "id": "a1"}'), calls=[CITY], well_formed=False),
        Case("lines", PARIS.replace("[{", "[\n  {").replace("}]", "}\n]"), calls=[CITY], well_formed=False),
    ),
)
