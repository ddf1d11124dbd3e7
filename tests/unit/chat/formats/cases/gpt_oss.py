"""gpt-oss."""

from __future__ import annotations

from puna.chat.formats.families.gpt_oss import Harmony
from tests.unit.chat.formats.harness import Case, Family

ANALYSIS = "<|channel|>analysis<|message|>Hm <think> to=functions.now.<|end|><|start|>assistant"
PARIS = '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Paris"}'
FINAL = "<|channel|>final<|message|>"
CITY = ("get_weather", '{"city": "Paris"}')
HM = "Hm <think> to=functions.now."


def call(name: str, arguments: str) -> str:
    return f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{arguments}"


FAMILY = Family(
    Harmony(),
    (
        Case("text", f"{FINAL}Hello.", content="Hello."),
        Case("call", PARIS, calls=[CITY]),
        Case("parallel", f"{PARIS}<|call|><|start|>assistant{PARIS}<|call|>", calls=[CITY, CITY], well_formed=False),
        Case(
            "text-before",
            f"<|channel|>commentary<|message|>Let me look.\n<|end|><|start|>assistant{PARIS}",
            content="Let me look.",
            calls=[CITY],
        ),
        Case("text-after", f"{PARIS}<|end|><|start|>assistant{FINAL}Done.", content="Done.", calls=[CITY], well_formed=False),
        Case("thoughts", f"{ANALYSIS}{PARIS}", reasoning=HM, calls=[CITY]),
        Case("thoughts-text", f"{ANALYSIS}{FINAL}Yes. ", reasoning=HM, content="Yes. "),
        Case("thoughts-twice", f"{ANALYSIS}{ANALYSIS}{FINAL}Yes.", reasoning=f"{HM}\n{HM}", content="Yes."),
        Case(
            "recipient-first",
            f'{ANALYSIS} to=functions.get_weather<|channel|>commentary json<|message|>{{"city": "Paris"}}',
            reasoning=HM,
            calls=[CITY],
            required=False,
        ),
        Case(
            "recipient-at-once",
            ' to=functions.get_weather<|channel|>commentary json<|message|>{"city": "Paris"}',
            calls=[CITY],
            required=False,
        ),
        Case("in-analysis", PARIS.replace("commentary", "analysis"), calls=[CITY], required=False),
        Case(
            "nested",
            call("get_weather", '{"city": "P", "where": {"lat": 1.5, "names": ["}"]}}'),
            calls=[("get_weather", '{"city": "P", "where": {"lat": 1.5, "names": ["}"]}}')],
        ),
        Case("escapes", call("run_code", '{"code": "\\"ü\\"😀\\n"}'), calls=[("run_code", {"code": '"ü"😀\n'})]),
        Case("empty-arguments", call("now", "{}"), calls=[("now", "{}")]),
        Case("tag-in-string", call("run_code", '{"code": "<|x|> <b"}'), calls=[("run_code", '{"code": "<|x|> <b"}')]),
        Case("wrong-json", call("now", "{oops"), calls=[("now", "{oops")], well_formed=False),
        Case("no-header", "Hello to=you.", content="Hello to=you."),
        Case("half-a-mark", f"{FINAL}Well <|en", content="Well ", cut=True),
        Case("header-alone", "<|channel|>fin", cut=True),
        Case("no-tools", f"{ANALYSIS}{FINAL}Yes.", reasoning=HM, content="Yes.", tools=()),
    ),
)
