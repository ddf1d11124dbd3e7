"""MiniMax M2."""

from __future__ import annotations

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.families.minimax import MINIMAX_M2
from tests.unit.chat.formats.harness import Case, Family


def call(name: str, *arguments: str) -> str:
    inner = "".join(
        f'<parameter name="{key}">{value}</parameter>\n' for key, value in zip(arguments[::2], arguments[1::2], strict=True)
    )
    return f'<invoke name="{name}">\n{inner}</invoke>\n'


def section(*calls: str) -> str:
    return f"<minimax:tool_call>\n{''.join(calls)}</minimax:tool_call>"


PARIS, NOW = call("get_weather", "city", "Paris", "days", "2"), call("now")
CITY = ("get_weather", '{"city": "Paris", "days": 2}')
WHERE = '{"lat": 1.5, "names": ["a", "</parameter>"]}'
ODD = '\t"ü"\\n 😀\n <b>\n'

FAMILY = Family(
    DescribedFormat(MINIMAX_M2),
    (
        Case("text", "<b>Hi</b>", content="<b>Hi</b>"),
        Case("call", section(PARIS), calls=[CITY]),
        Case("parallel", section(PARIS, NOW), calls=[CITY, ("now", "{}")]),
        Case("text-before", f"Let me look.\n{section(PARIS)}", content="Let me look.", calls=[CITY]),
        Case("text-after", f"{section(PARIS)}\nDone.", content="Done.", calls=[CITY], well_formed=False),
        Case("thoughts", f"<think>\nHm.\n</think>\n\n{section(PARIS)}", reasoning="Hm.", calls=[CITY]),
        Case("opened", f"Hm.\n</think>\n\n{section(PARIS)}", reasoning="Hm.", calls=[CITY], prompt="]~b]ai\n<think>\n"),
        Case(
            "nested",
            section(call("get_weather", "city", "", "where", WHERE)),
            calls=[("get_weather", f'{{"city": "", "where": {WHERE}}}')],
        ),
        Case("escapes", section(call("run_code", "code", ODD)), calls=[("run_code", {"code": ODD})]),
        Case("empty-arguments", section(NOW), calls=[("now", "{}")]),
        Case(
            "tag-in-string",
            section(call("run_code", "code", "</invoke></minimax:tool_call>")),
            calls=[("run_code", '{"code": "</invoke></minimax:tool_call>"}')],
        ),
        Case("no-lines", section(PARIS).replace("\n", ""), calls=[CITY], well_formed=False),
        Case(
            "wrong-json",
            section(call("get_weather", "days", "two")),
            calls=[("get_weather", '{"days": "two"}')],
            well_formed=False,
        ),
        Case("no-end", section(PARIS).replace("</invoke>\n", ""), calls=[CITY], well_formed=False),
        Case("no-call", section("soon"), content="soon", well_formed=False),
        Case("half-a-mark", "Well <minimax:tool", content="Well ", cut=True),
    ),
    prompt="]~b]ai\n<think>\n",
)
