"""GigaChat 3."""

from __future__ import annotations

from collections.abc import Sequence

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.families.gigachat import GIGACHAT3
from tests.unit.chat.formats.cases.standard import CITY, Call, standard
from tests.unit.chat.formats.harness import Case, Family

END, ROLE_END = "<|message_sep|>\n\n", "<|role_sep|>\n"
MARK = f"{END}function call{ROLE_END}"


def spell(calls: Sequence[Call]) -> str:
    return "".join(f'{MARK}{{"name": "{name}", "arguments": {arguments}}}' for name, arguments in calls)


PARIS = spell([CITY])
OWN = ("half-a-mark", "mark-like-text", "forbidden", "no-tools")

FAMILY = Family(
    DescribedFormat(GIGACHAT3),
    (
        *(case for case in standard(spell, MARK, parallel=False) if case.name not in OWN),
        Case("mark-like-text", f"Well{END}function, no.", content="Well"),
        Case("forbidden", f"Not{END}function call, no.", content="Not", choice="none"),
        Case("no-tools", f"Just {PARIS}", content="Just ", tools=()),
        Case("half-a-mark", "Well<|message_sep|>\n\nfunc", content="Well", cut=True),
        Case("ended", f"Yes.{END}", content="Yes."),
        Case("call-ended", f"{PARIS}{END}", calls=[CITY], well_formed=False),
        Case("no-blanks", PARIS.replace(": ", ":"), calls=[("get_weather", '{"city":"Paris"}')], well_formed=False),
    ),
    control=(END, ROLE_END),
)
