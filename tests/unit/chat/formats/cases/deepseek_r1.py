"""DeepSeek R1."""

from __future__ import annotations

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.families.deepseek import R1
from tests.unit.chat.formats.harness import Case, Family


def call(name: str, arguments: str) -> str:
    return f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{arguments}\n```<｜tool▁call▁end｜>"


def calls(*texts: str) -> str:
    inner = "\n".join(texts)
    return f"<｜tool▁calls▁begin｜>{inner}<｜tool▁calls▁end｜>"


PARIS, NOW = call("get_weather", '{"city": "Paris"}'), call("now", "{}")
CITY = ("get_weather", '{"city": "Paris"}')
PROMPT = "<｜Assistant｜><think>\n"

FAMILY = Family(
    DescribedFormat(R1),
    (
        Case("text", "Hm.\n</think>\n\nHello.", reasoning="Hm.", content="Hello.", prompt=PROMPT),
        Case("text-alone", "Hello.", content="Hello."),
        Case("call", calls(PARIS), calls=[CITY]),
        Case("parallel", calls(PARIS, NOW), calls=[CITY, ("now", "{}")]),
        Case("text-before", f"Let me look.\n\n{calls(PARIS)}", content="Let me look.", calls=[CITY]),
        Case("text-after", f"{calls(PARIS)}\nDone.", content="Done.", calls=[CITY], well_formed=False),
        Case("thoughts", f"Hm.\n</think>\n\n{calls(PARIS)}", reasoning="Hm.", calls=[CITY], prompt=PROMPT),
        Case("thoughts-end-in-call", f"Hm.\n\n{calls(PARIS)}", reasoning="Hm.", calls=[CITY], prompt=PROMPT, required=False),
        Case("own-thoughts", f"<think>\nHm.\n</think>\n\n{calls(NOW)}", reasoning="Hm.", calls=[("now", "{}")]),
        Case(
            "nested",
            calls(call("get_weather", '{"city": "P", "where": {"lat": 1.5, "names": ["a", "```"]}}')),
            calls=[("get_weather", '{"city": "P", "where": {"lat": 1.5, "names": ["a", "```"]}}')],
        ),
        Case(
            "escapes",
            calls(call("run_code", '{"code": "print(\\"ü😀\\")\\n"}')),
            calls=[("run_code", {"code": 'print("ü😀")\n'})],
        ),
        Case("empty-arguments", calls(NOW), calls=[("now", "{}")]),
        Case(
            "tag-in-string",
            calls(call("run_code", '{"code": "<｜tool▁call▁end｜>```"}')),
            calls=[("run_code", '{"code": "<｜tool▁call▁end｜>```"}')],
        ),
        Case("pretty", calls(call("now", "{\n}")), calls=[("now", "{\n}")], well_formed=False),
        Case("no-section", PARIS, calls=[CITY], well_formed=False, required=False),
        Case("no-end", calls(PARIS).removesuffix("<｜tool▁calls▁end｜>"), calls=[CITY], well_formed=False),
        Case("wrong-json", calls(call("now", "{oops}")), calls=[("now", "{oops}")], well_formed=False),
        Case("no-json", calls(call("now", "oops")), calls=[("now", "{}")], well_formed=False),
        Case("no-call", "<｜tool▁calls▁begin｜>soon<｜tool▁calls▁end｜>!", content="soon!", well_formed=False),
        Case("half-a-mark", "Well <｜tool▁ca", content="Well ", cut=True),
        Case("code", "```json\n{}\n```", content="```json\n{}\n```"),
    ),
)
