"""GLM 4.6, with line ends between tags."""

from __future__ import annotations

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.families.glm import glm
from tests.unit.chat.formats.harness import Case, Family


def cases(line: str) -> tuple[Case, ...]:
    """Those of GLM 4.6 and 4.7, which differ in the line ends."""

    def call(name: str, *arguments: str) -> str:
        inner = "".join(
            f"<arg_key>{key}</arg_key>{line}<arg_value>{value}</arg_value>{line}"
            for key, value in zip(arguments[::2], arguments[1::2], strict=True)
        )
        return f"<tool_call>{name}{line}{inner}</tool_call>"

    paris, now = call("get_weather", "city", "Paris", "days", "2"), call("now")
    city = ("get_weather", '{"city": "Paris", "days": 2}')
    where = '{"lat": 1.5, "names": ["a", "</arg_value>"]}'
    odd = '"ü"\\n\t😀\n\n </b>\n'
    return (
        Case("text", "1 < 2 and <tool.", content="1 < 2 and <tool."),
        Case("call", paris, calls=[city]),
        Case("parallel", f"{paris}{line}{now}", calls=[city, ("now", "{}")]),
        Case("text-before", f"Let me look.{line}{paris}", content="Let me look.", calls=[city]),
        Case("text-after", f"{paris}\nDone.", content="Done.", calls=[city], well_formed=False),
        Case("thoughts", f"\n<think>Hm.</think>{line}{paris}", reasoning="Hm.", calls=[city]),
        Case("opened", f"Hm.</think>{line}{paris}", reasoning="Hm.", calls=[city], prompt="<|assistant|><think>"),
        Case("closed", "\nYes.\n", content="Yes.", prompt="<|assistant|>\n<think></think>"),
        Case("unclosed", f"Hm.{paris}", reasoning="Hm.", calls=[city], prompt="<think>"),
        Case(
            "nested",
            call("get_weather", "city", "", "where", where),
            calls=[("get_weather", f'{{"city": "", "where": {where}}}')],
        ),
        Case("escapes", call("run_code", "code", odd), calls=[("run_code", {"code": odd})]),
        Case("empty-arguments", now, calls=[("now", "{}")]),
        Case("number-as-string", call("get_weather", "city", "12"), calls=[("get_weather", '{"city": "12"}')]),
        Case(
            "tag-in-string",
            call("run_code", "code", "</tool_call><arg_key>x</arg_key>\n<tool_call>"),
            calls=[("run_code", '{"code": "</tool_call><arg_key>x</arg_key>\\n<tool_call>"}')],
        ),
        Case(
            "blanks",
            "<tool_call> get_weather \n\n<arg_key>city</arg_key> \n <arg_value>Oslo</arg_value> \n</tool_call>",
            calls=[("get_weather", '{"city": "Oslo"}')],
            well_formed=False,
        ),
        Case(
            "no-value-tag",
            f"<tool_call>get_weather{line}<arg_key>city</arg_key>Oslo</arg_value></tool_call>",
            calls=[("get_weather", '{"city": "Oslo"}')],
            well_formed=False,
        ),
        Case("wrong-json", call("get_weather", "days", "[2"), calls=[("get_weather", '{"days": "[2"}')], well_formed=False),
        Case("no-call", "<tool_call>a b c</tool_call>", content="a b c", well_formed=False),
        Case("half-a-mark", "Well <tool_cal", content="Well", cut=True),
    )


FAMILY = Family(
    DescribedFormat(glm("<arg_key>k</arg_key>\n<arg_value>")),
    cases("\n"),
    control=("<think>", "</think>", "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
)
