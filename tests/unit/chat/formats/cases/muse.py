"""Muse Glimmer."""

from __future__ import annotations

from puna.chat.formats.families.muse import Muse
from tests.unit.chat.formats.harness import Case, Family


def invoke(name: str, *arguments: str) -> str:
    inner = "".join(
        f'<atem:parameter name="{key}">{value}</atem:parameter>\n'
        for key, value in zip(arguments[::2], arguments[1::2], strict=True)
    )
    return f'<atem:invoke name="{name}">\n{inner}</atem:invoke>\n'


def section(*invokes: str) -> str:
    return f"<atem:function_calls>\n{''.join(invokes)}</atem:function_calls>"


def call(name: str, *arguments: str) -> str:
    return f" to={name}<|message|>{section(invoke(name, *arguments))}"


NEXT = "<|eom|><|start|>assistant"
PARIS, NOW = call("get_weather", "city", "Paris", "days", "2"), call("now")
CITY = ("get_weather", '{"city": "Paris", "days": 2}')
THOUGHTS = f" to=self<|message|>Hm.{NEXT}"
WHERE = '{"lat": 1.5, "names": ["a", "</atem:parameter>"]}'
ODD = ' "ü"\\n\t😀\n <b>\n'

FAMILY = Family(
    Muse(),
    (
        Case("text", " to=user<|message|>to=me <atem>", content="to=me <atem>"),
        Case("no-header", "Hello.", content="Hello."),
        Case("no-recipient", "<|message|>Hello.<|eot|>", content="Hello."),
        Case("call", PARIS, calls=[CITY]),
        Case("parallel", PARIS + NEXT + NOW, calls=[CITY, ("now", "{}")]),
        Case(
            "one-message",
            f" to=now<|message|>{section(invoke('now'), invoke('get_weather', 'city', 'Oslo'))}<|eot|>",
            calls=[("now", "{}"), ("get_weather", '{"city": "Oslo"}')],
            well_formed=False,
        ),
        Case("text-before", f" to=user<|message|>Let me look.{NEXT}{PARIS}", content="Let me look.", calls=[CITY]),
        Case("text-after", f"{PARIS}{NEXT} to=user<|message|>Done.", content="Done.", calls=[CITY], well_formed=False),
        Case("thoughts", THOUGHTS + PARIS, reasoning="Hm.", calls=[CITY]),
        Case("thoughts-text", f"{THOUGHTS} to=user<|message|>Yes.<|eot|>", reasoning="Hm.", content="Yes."),
        Case("thoughts-twice", THOUGHTS + THOUGHTS + NOW, reasoning="Hm.\nHm.", calls=[("now", "{}")]),
        Case(
            "nested",
            call("get_weather", "city", "", "where", WHERE),
            calls=[("get_weather", f'{{"city": "", "where": {WHERE}}}')],
        ),
        Case("escapes", call("run_code", "code", ODD), calls=[("run_code", {"code": ODD})]),
        Case("empty-arguments", NOW, calls=[("now", "{}")]),
        Case(
            "tag-in-string",
            call("run_code", "code", "</atem:invoke></atem:function_calls>"),
            calls=[("run_code", '{"code": "</atem:invoke></atem:function_calls>"}')],
        ),
        Case("unknown-tool", call("f", "x", "1"), calls=[("f", '{"x": 1}')], well_formed=False),
        Case("wrong-json", call("get_weather", "days", "two"), calls=[("get_weather", '{"days": "two"}')], well_formed=False),
        Case("no-end", PARIS.replace("</atem:invoke>\n", ""), calls=[CITY], well_formed=False),
        Case(
            "cut-by-message",
            PARIS.removesuffix("</atem:invoke>\n</atem:function_calls>") + NEXT + NOW,
            calls=[("get_weather", {"city": "Paris", "days": 2}), ("now", "{}")],
            well_formed=False,
        ),
        Case("no-call", f" to=now<|message|>{section('soon')}<|eot|>", content="soon", well_formed=False),
        Case("half-a-mark", " to=user<|message|>Well <|eo", content="Well ", cut=True),
    ),
    control=("<|start|>", "<|message|>", "<|eom|>", "<|eot|>"),
)
