"""FireFunction 2."""

from __future__ import annotations

from collections.abc import Sequence

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.families.firefunction import FIREFUNCTION
from tests.unit.chat.formats.cases.standard import CITY, Call, standard
from tests.unit.chat.formats.harness import Case, Family


def spell(calls: Sequence[Call]) -> str:
    items = ", ".join(f'{{"name": "{name}", "arguments": {arguments}}}' for name, arguments in calls)
    return f" functools[{items}]"


PARIS = spell([CITY])

FAMILY = Family(
    DescribedFormat(FIREFUNCTION),
    (
        *standard(spell, " functools["),
        Case("no-blank", PARIS.strip(), calls=[CITY], required=False),
        Case("text-after", f"{PARIS}\nDone.", content="Done.", calls=[CITY], well_formed=False),
        Case("the-word", "Use functools.reduce.", content="Use functools.reduce."),
        Case("an-index", "Take functools[0] and go.", content="Take functools[0] and go.", well_formed=False),
        Case("an-empty-list", "Take functools[] and go.", content="Take functools[] and go.", well_formed=False),
        Case("an-open-list", "Take functools[", content="Take functools[", well_formed=False),
        Case("not-closed", PARIS.removesuffix("]"), calls=[CITY], well_formed=False),
    ),
)
