"""Seed-OSS."""

from __future__ import annotations

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.families.seed_oss import SEED_OSS
from tests.unit.chat.formats.harness import Case, Family


def call(name: str, *arguments: str) -> str:
    inner = "".join(f"<parameter={key}>{value}</parameter>\n" for key, value in zip(arguments[::2], arguments[1::2], strict=True))
    return f"<seed:tool_call>\n<function={name}>\n{inner}</function>\n</seed:tool_call>"


PARIS, NOW = call("get_weather", "city", "Paris", "days", "2"), call("now")
CITY = ("get_weather", '{"city": "Paris", "days": 2}')
WHERE = '{"lat": 1.5, "names": ["a", "</parameter>"]}'
ODD = "\t\"ü\"\\n 😀\n <b>'x'\n"
BUDGET = "Hm. <seed:cot_budget_reflect>I have used 9 tokens.</seed:cot_budget_reflect> So."

FAMILY = Family(
    DescribedFormat(SEED_OSS),
    (
        Case("text", "<function> is a word.", content="<function> is a word."),
        Case("call", PARIS, calls=[CITY]),
        Case("parallel", f"{PARIS}\n{NOW}", calls=[CITY, ("now", "{}")]),
        Case("text-before", f"Let me look.\n\n{PARIS}", content="Let me look.", calls=[CITY]),
        Case("text-after", f"{PARIS}\nDone.", content="Done.", calls=[CITY], well_formed=False),
        Case("thoughts", f"<seed:think>{BUDGET}</seed:think>\n{PARIS}", reasoning=BUDGET, calls=[CITY]),
        Case("thoughts-text", "<seed:think>\nHm.\n</seed:think>\nYes.", reasoning="Hm.", content="Yes."),
        Case("closed", "\nYes.", content="Yes.", prompt="0.</seed:cot_budget_reflect>\n</seed:think>"),
        Case(
            "nested",
            call("get_weather", "city", "", "where", WHERE),
            calls=[("get_weather", f'{{"city": "", "where": {WHERE}}}')],
        ),
        Case(
            "as-python",
            call("get_weather", "where", "{'lat': 1.5, 'names': ['a\"', \"it's\"]}", "exact", "False"),
            calls=[("get_weather", {"where": {"lat": 1.5, "names": ['a"', "it's"]}, "exact": False})],
            well_formed=False,
        ),
        Case("escapes", call("run_code", "code", ODD), calls=[("run_code", {"code": ODD})]),
        Case("empty-arguments", NOW, calls=[("now", "{}")]),
        Case(
            "tag-in-string",
            call("run_code", "code", "</function></seed:tool_call>"),
            calls=[("run_code", '{"code": "</function></seed:tool_call>"}')],
        ),
        Case(
            "wrong-json",
            call("get_weather", "where", "{'lat'"),
            calls=[("get_weather", '{"where": "{\'lat\'"}')],
            well_formed=False,
        ),
        Case("no-call", "<seed:tool_call>\nsoon</seed:tool_call>", content="\nsoon", well_formed=False),
        Case("half-a-mark", "Well <seed:tool", content="Well ", cut=True),
    ),
)
