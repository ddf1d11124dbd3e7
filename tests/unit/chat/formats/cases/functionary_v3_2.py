"""Functionary 3.2."""

from __future__ import annotations

from collections.abc import Sequence

from puna.chat.formats.families.functionary import Functionary
from tests.unit.chat.formats.cases.standard import CITY, NOW, Call, standard
from tests.unit.chat.formats.harness import Case, Family

PROMPT = "<|start_header_id|>assistant<|end_header_id|>\n\n>>>"


def spell(calls: Sequence[Call]) -> str:
    return ">>>".join(f"{name}\n{arguments}" for name, arguments in calls)


PARIS = spell([CITY])
STANDARD = [
    case
    for case in standard(spell, ">>>", gap=">>>", before="all\n", prompt=PROMPT)
    if case.name not in ("no-tools", "mark-like-text")
]

FAMILY = Family(
    Functionary(),
    (
        *STANDARD,
        Case("text-after", f"{PARIS}>>>all\nDone.", content="Done.", calls=[CITY], prompt=PROMPT, well_formed=False),
        Case("not-begun", "Let me look.>>>now\n{}", content="Let me look.", calls=[NOW]),
        Case("marked", f">>>all\nYes.>>>{PARIS}", content="Yes.", calls=[CITY]),
        Case("mark-like-text", "all\nWell >>, no.", content="Well >>, no.", prompt=PROMPT),
        Case("a-session", "all\n>>> 1 + 1\n2\n", content=">>> 1 + 1\n2\n", prompt=PROMPT),
        Case("half-a-session", "all\nSo:\n>>> 1 +", content="So:\n>>> 1 +", prompt=PROMPT),
        Case("unknown", "nobody\n{}", content="nobody\n{}", prompt=PROMPT, well_formed=False),
        Case("no-header", "Hello.", content="Hello.", prompt=PROMPT),
        Case(
            "code",
            'run_code\nprint("ü")\n>>>now\n{}',
            calls=[("run_code", '{"code": "print(\\"ü\\")\\n"}'), NOW],
            prompt=PROMPT,
            well_formed=False,
        ),
        Case("last-code", "run_code\n1 + 1", calls=[("run_code", '{"code": "1 + 1"}')], prompt=PROMPT, well_formed=False),
        Case("no-arguments", "get_weather\nParis", calls=[("get_weather", "{}")], prompt=PROMPT, well_formed=False),
        Case("no-tools", f"all\nJust >>>{PARIS}", content=f"Just >>>{PARIS}", prompt=PROMPT, tools=()),
    ),
    prompt=PROMPT,
)
