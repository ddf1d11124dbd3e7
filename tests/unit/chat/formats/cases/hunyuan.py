"""Hunyuan 3."""

from __future__ import annotations

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.families.glm import hunyuan
from tests.unit.chat.formats.harness import Case, Family

END = ":opensource>"


def call(name: str, *arguments: str) -> str:
    inner = "".join(
        f"<arg_key{END}{key}</arg_key{END}\n<arg_value{END}{value}</arg_value{END}\n"
        for key, value in zip(arguments[::2], arguments[1::2], strict=True)
    )
    return f"<tool_call{END}{name}<tool_sep{END}\n{inner}</tool_call{END}\n"


def section(*calls: str) -> str:
    return f"<tool_calls{END}\n{''.join(calls)}</tool_calls{END}"


PARIS, NOW = call("get_weather", "city", "Paris", "days", "2"), call("now")
CITY = ("get_weather", '{"city": "Paris", "days": 2}')
WHERE = '{"lat": 1, "names": ["</arg_value:opensource>"]}'

FAMILY = Family(
    DescribedFormat(hunyuan("{%- set HYTK = ':opensource' %}")),
    (
        Case("text", "<think> is a tag.", content="<think> is a tag."),
        Case("call", section(PARIS), calls=[CITY]),
        Case("parallel", section(PARIS, NOW), calls=[CITY, ("now", "{}")]),
        Case("text-before", f"Let me look.{section(PARIS)}", content="Let me look.", calls=[CITY]),
        Case("text-after", f"{section(PARIS)}\nDone.", content="Done.", calls=[CITY], well_formed=False),
        Case("thoughts", f"<think{END}Hm.</think{END}{section(PARIS)}", reasoning="Hm.", calls=[CITY]),
        Case("opened", f"Hm.</think{END}Yes.", reasoning="Hm.", content="Yes.", prompt=f"<think{END}"),
        Case("closed", " Yes.", content="Yes.", prompt=f"<think{END}</think{END}"),
        Case(
            "nested",
            section(call("get_weather", "city", "", "where", WHERE)),
            calls=[("get_weather", f'{{"city": "", "where": {WHERE}}}')],
        ),
        Case("escapes", section(call("run_code", "code", '"ü"\\n\n😀')), calls=[("run_code", {"code": '"ü"\\n\n😀'})]),
        Case("empty-arguments", section(NOW), calls=[("now", "{}")]),
        Case(
            "tag-in-string",
            section(call("run_code", "code", f"</tool_call{END}<tool_calls{END}")),
            calls=[("run_code", f'{{"code": "</tool_call{END}<tool_calls{END}"}}')],
        ),
        Case("no-section", PARIS, calls=[CITY], well_formed=False),
        Case("wrong-json", section(call("now", "x", "{1")), calls=[("now", '{"x": "{1"}')], well_formed=False),
        Case("no-call", section("soon"), content="soon", well_formed=False),
        Case("half-a-mark", "Well <tool_calls:open", content="Well ", cut=True),
    ),
)
