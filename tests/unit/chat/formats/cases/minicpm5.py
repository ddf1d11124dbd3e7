"""MiniCPM 5."""

from __future__ import annotations

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.families.minicpm5 import MINICPM5
from tests.unit.chat.formats.harness import Case, Family

PARIS = '<function name="get_weather"><param name="city">Paris</param></function>'
NOW_CALL = '<function name="now"></function>'
CITY, NOW = ("get_weather", '{"city": "Paris"}'), ("now", "{}")
PYTHON = "<param name=\"where\">{'lat': 1, 'names': [None]}</param><param name=\"exact\">True</param>"
NESTED = '{"lat": 1.5, "names": ["a", "</param>"]}'


def code(text: str) -> str:
    return f'<function name="run_code"><param name="code">{text}</param></function>'


FAMILY = Family(
    DescribedFormat(MINICPM5),
    (
        Case("text", "Hello, you.", content="Hello, you."),
        Case("call", PARIS, calls=[CITY]),
        Case("parallel", f"{PARIS}\n{NOW_CALL}", calls=[CITY, NOW]),
        Case("text-before", f"Let me look.\n{PARIS}", content="Let me look.", calls=[CITY]),
        Case("text-after", f"{PARIS}\nDone.", content="Done.", calls=[CITY], well_formed=False),
        Case("thoughts", f"<think>\nHm.\n</think>\n\n{PARIS}", reasoning="Hm.", calls=[CITY]),
        Case("thoughts-text", "<think>\nHm.\n</think>\n\nYes.", reasoning="Hm.", content="Yes."),
        Case("opened", f"Hm.\n</think>\n\n{PARIS}", reasoning="Hm.", calls=[CITY], prompt="<|im_start|>assistant\n<think>\n"),
        Case(
            "nested",
            PARIS.replace("</f", f'<param name="where">{NESTED}</param></f'),
            calls=[("get_weather", f'{{"city": "Paris", "where": {NESTED}}}')],
        ),
        Case(
            "python",
            PARIS.replace("</f", f"{PYTHON}</f"),
            calls=[("get_weather", {"city": "Paris", "where": {"lat": 1, "names": [None]}, "exact": True})],
            well_formed=False,
        ),
        Case("escapes", code('"ü"\\n\n 😀'), calls=[("run_code", {"code": '"ü"\\n\n 😀'})]),
        Case("quoted", code("<![CDATA[a < b && c\n</param>]]>"), calls=[("run_code", '{"code": "a < b && c\\n</param>"}')]),
        Case("quoted-in-part", code("a <![CDATA[b]]>"), calls=[("run_code", '{"code": "a <![CDATA[b]]>"}')], well_formed=False),
        Case(
            "quoted-object",
            f'<function name="get_weather"><param name="where"><![CDATA[{NESTED}]]></param></function>',
            calls=[("get_weather", f'{{"where": {NESTED}}}')],
            well_formed=False,
        ),
        Case("empty-arguments", NOW_CALL, calls=[NOW]),
        Case("tag-in-string", code("<function name="), calls=[("run_code", '{"code": "<function name="}')]),
        Case("no-name", '<function name="">x</function>', content='">x', well_formed=False),
        Case("not-closed", PARIS.removesuffix("</param></function>"), calls=[("get_weather", '{"city": "Paris')],
             well_formed=False),
        Case("half-a-mark", 'Well <function name="no', content="Well ", cut=True, well_formed=False),
        Case("mark-like-text", "A <function> of <param name", content="A <function> of <param name"),
        Case("no-tools", PARIS, content=PARIS, tools=()),
    ),
)  # fmt: skip
