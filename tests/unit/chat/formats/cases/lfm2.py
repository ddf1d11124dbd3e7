"""LFM2 and LFM2.5."""

from __future__ import annotations

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.description import Thinking
from puna.chat.formats.families.lfm2 import lfm2
from tests.unit.chat.formats.harness import Case, Family

BEGIN, END = "<|tool_call_start|>", "<|tool_call_end|>"
PARIS = f'{BEGIN}[get_weather(city="Paris")]{END}'
CITY, NOW = ("get_weather", '{"city": "Paris"}'), ("now", "{}")


def code(text: str) -> str:
    return f"{BEGIN}[run_code(code={text})]{END}"


FAMILY = Family(
    DescribedFormat(lfm2(Thinking())),
    (
        Case("text", "Hello, you.", content="Hello, you."),
        Case("call", PARIS, calls=[CITY]),
        Case("parallel", f'{BEGIN}[get_weather(city="Paris"), now()]{END}', calls=[CITY, NOW]),
        Case("text-before", f"Let me look.{PARIS}", content="Let me look.", calls=[CITY]),
        Case("text-after", f"{PARIS}Done.", content="Done.", calls=[CITY], well_formed=False),
        Case("thoughts", f"<think>Hm.</think>{PARIS}", reasoning="Hm.", calls=[CITY]),
        Case("thoughts-text", "<think>\nHm.\n</think>\n\nYes.", reasoning="Hm.", content="Yes."),
        Case(
            "nested",
            f'{BEGIN}[get_weather(city="Paris", days=2, where={{"lat": 1.5, "names": ["a", ")"]}}, exact=True)]{END}',
            calls=[("get_weather", '{"city": "Paris", "days": 2, "where": {"lat": 1.5, "names": ["a", ")"]}, "exact": true}')],
        ),
        Case(
            "python",
            f"{BEGIN}[get_weather(city='Paris', where={{'lat': 1.5, 'names': ['it', None, False]}})]{END}",
            calls=[("get_weather", {"city": "Paris", "where": {"lat": 1.5, "names": ["it", None, False]}})],
            well_formed=False,
        ),
        Case("escapes", code('"\\"ü\\"\\n😀"'), calls=[("run_code", '{"code": "\\"ü\\"\\n😀"}')]),
        Case("apostrophe", code("'L'Aquila, it's'"), calls=[("run_code", {"code": "L'Aquila, it's"})], well_formed=False),
        Case("lines", code("'a\nb'"), calls=[("run_code", '{"code": "a\\nb"}')], well_formed=False),
        Case("empty-arguments", f"{BEGIN}[now()]{END}", calls=[NOW]),
        Case("mark-in-string", code(f'"{END}), ]"'), calls=[("run_code", {"code": f"{END}), ]"})]),
        Case("no-name", f'{BEGIN}[get_weather("Paris")]{END}', calls=[CITY], well_formed=False),
        Case(
            "object",
            f'{BEGIN}[{{"name": "get_weather", "arguments": {{"city": "Paris"}}}}]{END}',
            calls=[CITY],
            well_formed=False,
        ),
        Case("no-call", f"{BEGIN}[soon]{END}", content="soon]", well_formed=False),
        Case("wrong", f"{BEGIN}[now(]{END}", calls=[("now", "{}")], well_formed=False),
        Case("no-value", f"{BEGIN}[get_weather(city=)]{END}", calls=[("get_weather", '{"city": null}')], well_formed=False),
        Case("cut-off", PARIS[: PARIS.index("ris")], calls=[("get_weather", '{"city": "Pa')], cut=True, well_formed=False),
        Case("half-a-mark", "Well <|tool_call", content="Well ", cut=True),
        Case("no-tools", PARIS, content=PARIS, tools=()),
    ),
)
