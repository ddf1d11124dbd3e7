"""DeepSeek V3.2."""

from __future__ import annotations

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.families.deepseek import V3_2
from tests.unit.chat.formats.harness import Case, Family

TOKEN = "｜DSML｜"


def call(name: str, *arguments: tuple[str, str, bool]) -> str:
    inner = "".join(
        f'<{TOKEN}parameter name="{key}" string="{"true" if string else "false"}">{value}</{TOKEN}parameter>\n'
        for key, value, string in arguments
    )
    return f'<{TOKEN}invoke name="{name}">\n{inner}</{TOKEN}invoke>\n'


def cases(section: str) -> tuple[Case, ...]:
    """Those of V3.2 and V4, which differ in the section's name."""

    def calls(*texts: str) -> str:
        return f"<{TOKEN}{section}>\n{''.join(texts)}</{TOKEN}{section}>"

    paris, now = call("get_weather", ("city", "Paris", True), ("days", "2", False)), call("now")
    city = ("get_weather", '{"city": "Paris", "days": 2}')
    prompt = "<｜Assistant｜><think>"
    where = '{"lat": 1, "names": ["</｜DSML｜parameter>"]}'
    return (
        Case("text", "1 < 2, <b> and <｜.", content="1 < 2, <b> and <｜."),
        Case("call", calls(paris), calls=[city]),
        Case("parallel", calls(paris, now), calls=[city, ("now", "{}")]),
        Case("text-before", f"Let me look.\n\n{calls(paris)}", content="Let me look.", calls=[city]),
        Case("text-after", f"{calls(paris)}\nDone.", content="Done.", calls=[city], well_formed=False),
        Case("thoughts", f"Hm.</think>{calls(paris)}", reasoning="Hm.", calls=[city], prompt=prompt),
        Case("thoughts-text", "Hm.</think>Yes.", reasoning="Hm.", content="Yes.", prompt=prompt),
        Case(
            "nested",
            calls(call("get_weather", ("city", "", True), ("where", where, False))),
            calls=[("get_weather", f'{{"city": "", "where": {where}}}')],
        ),
        Case(
            "escapes",
            calls(call("run_code", ("code", '"ü"\\n\t😀\n', True))),
            calls=[("run_code", {"code": '"ü"\\n\t😀\n'})],
        ),
        Case("empty-arguments", calls(now), calls=[("now", "{}")]),
        Case(
            "tag-in-string",
            calls(call("run_code", ("code", f"</{TOKEN}invoke><{TOKEN}{section}></b>", True))),
            calls=[("run_code", f'{{"code": "</{TOKEN}invoke><{TOKEN}{section}></b>"}}')],
        ),
        Case("number-as-string", calls(call("now", ("x", "1", True))), calls=[("now", '{"x": "1"}')], well_formed=False),
        Case("wrong-json", calls(call("now", ("x", "[1", False))), calls=[("now", '{"x": "[1"}')], well_formed=False),
        Case("no-call", calls("oops"), content="oops", well_formed=False),
        Case("half-a-mark", "Well <｜DS", content="Well ", cut=True),
    )


FAMILY = Family(DescribedFormat(V3_2), cases("function_calls"), control=(TOKEN, "<think>", "</think>"))
