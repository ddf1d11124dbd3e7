"""Apertus."""

from __future__ import annotations

from collections.abc import Sequence

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.families.apertus import APERTUS
from tests.unit.chat.formats.cases.standard import CITY, NOW, Call, standard
from tests.unit.chat.formats.harness import Case, Family


def spell(calls: Sequence[Call]) -> str:
    items = ", ".join(f'{{"{name}": {arguments}}}' for name, arguments in calls)
    return f"<|tools_prefix|>[{items}]<|tools_suffix|>"


PARIS = spell([CITY])

FAMILY = Family(
    DescribedFormat(APERTUS),
    (
        *standard(spell, "<|tools_prefix|>"),
        Case("text-after", f"{PARIS}Done.", content="Done.", calls=[CITY], well_formed=False),
        Case("thoughts", f"<|inner_prefix|>Hm.<|inner_suffix|>{PARIS}", reasoning="Hm.", calls=[CITY]),
        Case("thoughts-text", "<|inner_prefix|>Hm.<|inner_suffix|>Yes.", reasoning="Hm.", content="Yes."),
        Case("in-thoughts", f"<|inner_prefix|>Hm.{PARIS}", reasoning="Hm.", calls=[CITY]),
        Case("sections", f"{PARIS}{spell([NOW])}", calls=[CITY, NOW], well_formed=False),
        Case("no-blanks", PARIS.replace(": ", ":"), calls=[("get_weather", '{"city":"Paris"}')], well_formed=False),
        Case("no-object", "<|tools_prefix|>soon<|tools_suffix|>", content="soon", well_formed=False),
        Case("not-closed", PARIS.removesuffix("}]<|tools_suffix|>"), calls=[CITY], well_formed=False),
    ),
)
