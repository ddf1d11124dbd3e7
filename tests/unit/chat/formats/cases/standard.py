"""The cases that every family with arguments in JSON has, written in its way."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.unit.chat.formats.harness import Case

Call = tuple[str, str]

CITY: Call = ("get_weather", '{"city": "Paris"}')
NOW: Call = ("now", "{}")
NESTED: Call = ("get_weather", '{"city": "Paris", "where": {"lat": 1.5, "names": ["a", "}", "{b]"]}}')
ESCAPED: Call = ("run_code", '{"code": "print(\\"ü\\\\\\\\n\\")\\\\n😀"}'.replace("\\\\", "\\"))


def standard(
    spell: Callable[[Sequence[Call]], str],
    mark: str,
    *,
    gap: str = "",
    before: str = "",
    parallel: bool = True,
    prompt: str = "",
) -> tuple[Case, ...]:
    """`spell` writes calls, `mark` is what opens them, `gap` lies between text and calls, and `before` comes before text.
    `prompt` is how prompts end. `parallel` is whether the format has several calls."""
    call, code = spell([CITY]), ("run_code", f'{{"code": "a {mark.strip()} b {spell([NOW]).strip()}"}}'.replace("\n", "\\n"))
    code = (code[0], code[1][:10] + code[1][10:-2].replace('"', '\\"') + code[1][-2:])
    half = mark.strip()[:-1]
    return (
        Case("text", f"{before}Hello, you.\nYes?", content="Hello, you.\nYes?", prompt=prompt),
        Case("call", call, calls=[CITY], prompt=prompt),
        Case("parallel", spell([CITY, NOW]), calls=[CITY, NOW], prompt=prompt, well_formed=parallel),
        Case("text-before", f"{before}Let me look.{gap}{call}", content="Let me look.", calls=[CITY], prompt=prompt),
        Case("nested", spell([NESTED]), calls=[NESTED], prompt=prompt),
        Case("escapes", spell([ESCAPED]), calls=[ESCAPED], prompt=prompt),
        Case("empty-arguments", spell([NOW]), calls=[NOW], prompt=prompt),
        Case("mark-in-string", spell([code]), calls=[code], prompt=prompt),
        Case("wrong-json", spell([("now", "{1, ]")]), calls=[("now", "{1, ]")], prompt=prompt, well_formed=False),
        Case("cut-off", call[: call.index("Par") + 2], calls=[("get_weather", '{"city": "Pa')], prompt=prompt, cut=True,
             well_formed=False),
        Case("half-a-mark", f"{before}Well {half}", content="Well ", prompt=prompt, cut=True),
        Case("mark-like-text", f"{before}Well {half}, no.", content=f"Well {half}, no.", prompt=prompt),
        Case("forbidden", f"{before}Not {half}, no.", content=f"Not {half}, no.", prompt=prompt, choice="none"),
        Case("no-tools", f"{before}Just {call}", content=f"Just {call}", prompt=prompt, tools=()),
    )  # fmt: skip
