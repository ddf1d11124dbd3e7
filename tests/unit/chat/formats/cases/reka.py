"""Reka Edge."""

from __future__ import annotations

from dataclasses import replace

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.families.hermes import REKA
from tests.unit.chat.formats.cases import hermes
from tests.unit.chat.formats.harness import Case, Family

FAMILY = Family(
    DescribedFormat(REKA),
    (
        Case("after-a-colon", " Hello.", content="Hello."),
        *(
            replace(case, raw=case.raw.replace("</tool_call>\n<", "</tool_call><")) if case.name == "parallel" else case
            for case in hermes.CASES[:14]
        ),
    ),
)
