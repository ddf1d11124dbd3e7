"""Command R7B."""

from __future__ import annotations

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.families.cohere import command_r7b
from tests.unit.chat.formats.harness import Case, Family


def call(name: str, arguments: str = "{}", number: int = 0) -> str:
    return f'{{"tool_call_id": "{number}", "tool_name": "{name}", "parameters": {arguments}}}'


def section(*calls: str) -> str:
    inner = ",\n    ".join(calls)
    return f"<|START_ACTION|>[\n    {inner}\n]<|END_ACTION|>"


def cases(kind: str) -> tuple[Case, ...]:
    """Those of Command R7B and North Mini Code, which differ in the marks of answers."""
    paris, now = call("get_weather", '{"city": "Paris"}'), call("now", number=1)
    city = ("get_weather", '{"city": "Paris"}')
    nested = '{"city": "", "where": {"lat": 1, "names": ["}", "\\n]<|END_ACTION|>"]}}'
    thoughts = "<|START_THINKING|>Hm.<|END_THINKING|>"

    def said(text: str) -> str:
        return f"<|START_{kind}|>{text}<|END_{kind}|>"

    return (
        Case("text", said("1 <| 2."), content="1 <| 2."),
        Case("bare-text", "Hello.", content="Hello."),
        Case("call", section(paris), calls=[city]),
        Case("parallel", section(paris, now), calls=[city, ("now", "{}")]),
        Case("text-before", said("Let me look.") + section(paris), content="Let me look.", calls=[city]),
        Case("text-after", section(paris) + said("Done."), content="Done.", calls=[city], well_formed=False),
        Case("thoughts", thoughts + section(paris), reasoning="Hm.", calls=[city]),
        Case("thoughts-text", thoughts + said("Yes."), reasoning="Hm.", content="Yes."),
        Case("opened", f"Hm.<|END_THINKING|>{said('Yes.')}", reasoning="Hm.", content="Yes.", prompt="<|START_THINKING|>"),
        Case("closed", section(now), calls=[("now", "{}")], prompt="<|START_THINKING|><|END_THINKING|>"),
        Case("nested", section(call("get_weather", nested)), calls=[("get_weather", nested)]),
        Case(
            "escapes",
            section(call("run_code", '{"code": "\\"ü\\"\\n\\\\ 😀"}')),
            calls=[("run_code", {"code": '"ü"\n\\ 😀'})],
        ),
        Case("empty-arguments", section(now), calls=[("now", "{}")]),
        Case(
            "tag-in-string",
            section(call("run_code", '{"code": "<|START_ACTION|>["}')),
            calls=[("run_code", '{"code": "<|START_ACTION|>["}')],
        ),
        Case(
            "no-number",
            '<|START_ACTION|>[{"tool_name": "now", "parameters": {}}]<|END_ACTION|>',
            calls=[("now", "{}")],
            well_formed=False,
        ),
        Case("wrong-json", section(call("now", "{1}")), calls=[("now", "{1}")], well_formed=False),
        Case("no-call", "<|START_ACTION|>soon<|END_ACTION|>", content="soon", well_formed=False),
        Case("half-a-mark", f"<|START_{kind}|>Well <|START_AC", content="Well ", cut=True),
    )


FAMILY = Family(DescribedFormat(command_r7b("")), cases("RESPONSE"))
