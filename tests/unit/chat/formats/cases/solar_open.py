"""Solar Open."""

from __future__ import annotations

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.families.solar import SOLAR_OPEN
from tests.unit.chat.formats.harness import Case, Family


def call(name: str, arguments: str = "{}", id: str = "a1b2c3d4e5") -> str:
    return f"<|tool_call:begin|>{id}<|tool_call:name|>{name}<|tool_call:args|>{arguments}<|tool_call:end|>"


def section(*calls: str) -> str:
    return f"<|tool_calls|>{''.join(calls)}<|calls|>"


PARIS, NOW = call("get_weather", '{"city": "Paris"}'), call("now", id="0123456789")
CITY = ("get_weather", '{"city": "Paris"}')
NESTED = '{"city": "", "where": {"lat": 1, "names": ["}", "<|tool_call:end|>"]}}'
NEXT = "<|begin|>assistant"
THOUGHTS = f"<|think|>Hm.<|end|>{NEXT}"

FAMILY = Family(
    DescribedFormat(SOLAR_OPEN),
    (
        Case("text", "<|content|>1 <| 2.<|end|>", content="1 <| 2."),
        Case("call", section(PARIS), calls=[CITY], ids=["a1b2c3d4e5"]),
        Case("parallel", section(PARIS, NOW), calls=[CITY, ("now", "{}")], ids=["a1b2c3d4e5", "0123456789"]),
        Case("text-before", f"<|content|>Let me look.<|end|>{NEXT}{section(PARIS)}", content="Let me look.", calls=[CITY]),
        Case("text-after", f"{section(PARIS)}{NEXT}<|content|>Done.", content="Done.", calls=[CITY], well_formed=False),
        Case("thoughts", THOUGHTS + section(PARIS), reasoning="Hm.", calls=[CITY]),
        Case("thoughts-text", f"{THOUGHTS}<|content|>Yes.<|flush|>", reasoning="Hm.", content="Yes."),
        Case("closed", "<|content|>Yes.<|end|>", content="Yes.", prompt=f"{NEXT}<|think|><|end|>{NEXT}"),
        Case("nested", section(call("get_weather", NESTED)), calls=[("get_weather", NESTED)]),
        Case(
            "escapes",
            section(call("run_code", '{"code": "\\"ü\\"\\n\\\\ 😀"}')),
            calls=[("run_code", {"code": '"ü"\n\\ 😀'})],
        ),
        Case("empty-arguments", section(NOW), calls=[("now", "{}")]),
        Case(
            "tag-in-string",
            section(call("run_code", '{"code": "<|calls|><|tool_calls|>"}')),
            calls=[("run_code", '{"code": "<|calls|><|tool_calls|>"}')],
        ),
        Case(
            "odd-id",
            section(call("now", id="functions.now:1")),
            calls=[("now", "{}")],
            ids=["functions.now:1"],
            well_formed=False,
        ),
        Case("no-id", section(call("now", id="")), calls=[("now", "{}")], well_formed=False),
        Case("wrong-json", section(call("now", "{1}")), calls=[("now", "{1}")], well_formed=False),
        Case("no-call", section("soon"), content="soon", well_formed=False),
        Case("half-a-mark", "<|content|>Well <|tool_ca", content="Well ", cut=True),
    ),
    prompt=NEXT,
)
