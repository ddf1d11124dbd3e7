"""GigaChat 3.1."""

from __future__ import annotations

from collections.abc import Sequence

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.families.gigachat import GIGACHAT3_1
from tests.unit.chat.formats.cases.standard import CITY, Call, standard
from tests.unit.chat.formats.harness import Case, Family

MARK = "<|function_call|>"


def spell(calls: Sequence[Call]) -> str:
    return "".join(f'{MARK}{{"name": "{name}", "arguments": {arguments}}}' for name, arguments in calls)


PARIS = spell([CITY])

FAMILY = Family(
    DescribedFormat(GIGACHAT3_1),
    (
        *standard(spell, MARK, parallel=False),
        Case("ended", "Yes.<|message_sep|>\n\nuser<|role_sep|>\nNo.", content="Yes."),
        Case("call-ended", f"{PARIS}<|message_sep|>\n\n", calls=[CITY], well_formed=False),
        Case("text-after", f"{PARIS}\nDone.", content="Done.", calls=[CITY], well_formed=False),
    ),
    control=(MARK, "<|message_sep|>\n\n"),
)
