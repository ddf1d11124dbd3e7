"""Command R and R+."""

from __future__ import annotations

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.families.cohere import COMMAND_R
from tests.unit.chat.formats.harness import Case, Family


def call(name: str, arguments: str = "{}") -> str:
    return f'{{\n        "tool_name": "{name}",\n        "parameters": {arguments}\n    }}'


def section(*calls: str) -> str:
    inner = ",\n    ".join(calls)
    return f"Action:\n```json\n[\n    {inner}\n]```"


PARIS, NOW = call("get_weather", '{"city": "Paris"}'), call("now")
LINES = call("get_weather", '{\n            "city": "Paris"\n        }')
CITY = ("get_weather", {"city": "Paris"})
NESTED = '{"city": "", "where": {"lat": 1, "names": ["}", "]```"]}}'
FLAT = '{"tool_name": "get_weather", "parameters": {"city": "Paris"}}'

FAMILY = Family(
    DescribedFormat(COMMAND_R),
    (
        Case("text", "Actions speak: ```json\n[1]\n```", content="Actions speak: ```json\n[1]\n```"),
        Case("call", section(PARIS), calls=[CITY]),
        Case("lines", section(LINES), calls=[CITY], well_formed=False),
        Case("flat", section(FLAT), calls=[CITY], well_formed=False),
        Case("parallel", section(PARIS, NOW), calls=[CITY, ("now", "{}")]),
        Case("text-before", f"I will look.\n{section(PARIS)}", content="I will look.", calls=[CITY]),
        Case("text-after", f"{section(PARIS)}\nDone.", content="Done.", calls=[CITY], well_formed=False),
        Case("no-thoughts", "<think>Hm.</think>Yes.", content="<think>Hm.</think>Yes."),
        Case("nested", section(call("get_weather", NESTED)), calls=[("get_weather", NESTED)]),
        Case(
            "escapes",
            section(call("run_code", '{"code": "\\"ü\\"\\n\\\\ 😀"}')),
            calls=[("run_code", {"code": '"ü"\n\\ 😀'})],
        ),
        Case("empty-arguments", section(NOW), calls=[("now", "{}")]),
        Case(
            "tag-in-string",
            section(call("run_code", '{"code": "Action:\\n```json\\n["}')),
            calls=[("run_code", '{"code": "Action:\\n```json\\n["}')],
        ),
        Case("one-line", f"Action: ```json\n[{FLAT}]\n```", calls=[CITY], well_formed=False),
        Case("no-blank", f"Action:```json\n[{FLAT}]\n```", calls=[CITY], well_formed=False),
        Case("directly-answer", section(call("directly-answer")), well_formed=False),
        Case("directly_answer", f"{section(call('directly_answer'))}\nIt is noon.", content="It is noon.", well_formed=False),
        Case("wrong-json", section(call("now", "{1}")), calls=[("now", "{1}")], well_formed=False),
        Case("no-call", "Action:\n```json\nsoon\n```", content="soon\n```", well_formed=False),
        Case("half-a-mark", "Well Action:\n```js", content="Well ", cut=True),
    ),
)
