"""Kimi K3."""

from __future__ import annotations

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.families.kimi import KIMI_K3
from tests.unit.chat.formats.harness import Case, Family


def opened(tag: str) -> str:
    return f"<|open|>{tag}<|sep|>"


def closed(tag: str) -> str:
    return f"<|close|>{tag}<|sep|>"


def call(name: str, *arguments: tuple[str, str, str], index: int = 1) -> str:
    inner = "".join(opened(f'argument key="{key}" type="{kind}"') + value + closed("argument") for key, kind, value in arguments)
    return opened(f'call tool="{name}" index="{index}"') + inner + closed("call")


def said(text: str = "") -> str:
    return opened("response") + text + closed("response")


def section(*calls: str) -> str:
    return opened("tools") + "".join(calls) + closed("tools")


END = closed("message")
PARIS = call("get_weather", ("city", "string", "Paris"), ("days", "number", "2"))
NOW = call("now", index=2)
CITY = ("get_weather", '{"city": "Paris", "days": 2}')
WHERE = '{"lat": 1.5, "names": ["<|close|>argument<|sep|>"]}'
ODD = '"ü"\\n\t😀\n</b> <|sep'

FAMILY = Family(
    DescribedFormat(KIMI_K3),
    (
        Case("text", f"{said('1 <| 2.')}{END}", content="1 <| 2."),
        Case("call", said() + section(PARIS), calls=[CITY]),
        Case("parallel", said() + section(PARIS, NOW), calls=[CITY, ("now", "{}")]),
        Case("text-before", said("Let me look.") + section(PARIS), content="Let me look.", calls=[CITY]),
        Case("text-after", section(PARIS) + said("Done."), content="Done.", calls=[CITY], well_formed=False),
        Case("thoughts", f"{opened('think')}Hm.{closed('think')}{said()}{section(PARIS)}", reasoning="Hm.", calls=[CITY]),
        Case("opened", f"Hm.{closed('think')}{said()}{section(PARIS)}", reasoning="Hm.", calls=[CITY], prompt=opened("think")),
        Case(
            "thoughts-text", f"Hm.{closed('think')}{said('Yes.')}{END}", reasoning="Hm.", content="Yes.", prompt=opened("think")
        ),
        Case("begun", f"Yes.{closed('response')}{END}", content="Yes.", prompt=opened("response")),
        Case("begun-call", closed("response") + section(NOW), calls=[("now", "{}")], prompt=opened("response")),
        Case(
            "nested",
            said() + section(call("get_weather", ("city", "string", ""), ("where", "object", WHERE))),
            calls=[("get_weather", f'{{"city": "", "where": {WHERE}}}')],
        ),
        Case("escapes", said() + section(call("run_code", ("code", "string", ODD))), calls=[("run_code", {"code": ODD})]),
        Case("empty-arguments", said() + section(NOW), calls=[("now", "{}")]),
        Case(
            "tag-in-string",
            said() + section(call("run_code", ("code", "string", f"{closed('call')}{opened('tools')}"))),
            calls=[("run_code", '{"code": "<|close|>call<|sep|><|open|>tools<|sep|>"}')],
        ),
        Case("typed-string", section(call("now", ("x", "string", "1"))), calls=[("now", '{"x": "1"}')], well_formed=False),
        Case("typed-null", section(call("now", ("x", "null", "null"))), calls=[("now", '{"x": null}')], well_formed=False),
        Case("no-index", section(call("now")).replace(' index="1"', ""), calls=[("now", "{}")], well_formed=False),
        Case("wrong-json", section(call("now", ("x", "array", "[1"))), calls=[("now", '{"x": "[1"}')], well_formed=False),
        Case("no-call", section("soon"), content="soon", well_formed=False),
        Case("call-at-once", section(PARIS), calls=[CITY], required=False),
        Case("half-a-mark", f"{opened('response')}Well <|open|>too", content="Well ", cut=True),
    ),
    control=("<|open|>", "<|close|>", "<|sep|>"),
)
