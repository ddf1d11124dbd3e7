"""Functionary 3.1."""

from __future__ import annotations

from collections.abc import Sequence

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.families.functionary import FUNCTIONARY3_1
from tests.unit.chat.formats.cases.standard import CITY, Call, standard
from tests.unit.chat.formats.harness import Case, Family


def spell(calls: Sequence[Call]) -> str:
    return "".join(f"<function={name}>{arguments}</function>" for name, arguments in calls)


PARIS = spell([CITY])

FAMILY = Family(
    DescribedFormat(FUNCTIONARY3_1),
    (
        *standard(spell, "<function="),
        Case("text-after", f"{PARIS}\nDone.", content="Done.", calls=[CITY], well_formed=False),
        Case("lines", PARIS.replace(">{", ">\n{").replace("}<", "}\n<"), calls=[CITY], well_formed=False),
        Case("not-closed", PARIS.removesuffix("</function>"), calls=[CITY], well_formed=False),
        Case("no-name", "<function=>{}</function> end", content=">{} end", well_formed=False),
        Case("tagged", f"<|python_tag|>{PARIS}", calls=[CITY], well_formed=False),
        Case("compared", "a <function b", content="a <function b"),
    ),
)
