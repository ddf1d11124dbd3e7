"""Llama 3.1, 3.2 and 3.3."""

from __future__ import annotations

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.families.llama3 import LLAMA3
from puna.chat.formats.plan import Tool
from tests.unit.chat.formats.harness import Case, Family

PARIS = '{"name": "get_weather", "parameters": {"city": "Paris"}}'
NOW = '{"name": "now", "parameters": {}}'
CITY = ("get_weather", '{"city": "Paris"}')
SEARCH = Tool(name="brave_search", parameters={"type": "object", "properties": {"query": {"type": "string"}}})

FAMILY = Family(
    DescribedFormat(LLAMA3),
    (
        Case("word", "Yes", content="Yes"),
        Case("word-like-a-tool", "now", content="now"),
        Case("text", "Hello.\n", content="Hello.\n"),
        Case("call", PARIS, calls=[CITY]),
        Case("parallel", f"{PARIS}; {NOW}", calls=[CITY, ("now", "{}")], well_formed=False),
        Case("lines", f"{PARIS}\n{NOW}", calls=[CITY, ("now", "{}")], well_formed=False),
        Case("blanks-before", f"\n\n{PARIS}", calls=[CITY], required=False),
        Case("python-tag", f"<|python_tag|>{PARIS}", calls=[CITY], well_formed=False),
        Case("text-before", f"Sure: {PARIS}", content=f"Sure: {PARIS}"),
        Case("text-after", f"{PARIS}\nDone.", content="Done.", calls=[CITY], well_formed=False),
        Case(
            "nested",
            PARIS.replace("}", ', "where": {"lat": 1.5, "names": ["}"]}}', 1),
            calls=[("get_weather", '{"city": "Paris", "where": {"lat": 1.5, "names": ["}"]}}')],
        ),
        Case("escapes", PARIS.replace("Paris", '\\"ü\\"😀\\n'), calls=[("get_weather", {"city": '"ü"😀\n'})]),
        Case("empty-arguments", NOW, calls=[("now", "{}")]),
        Case("tag-in-string", PARIS.replace("Paris", "<|python_tag|>{"), calls=[("get_weather", '{"city": "<|python_tag|>{"}')]),
        Case("arguments", '{"name": "now", "arguments": {}}', calls=[("now", "{}")], well_formed=False),
        Case("with-type", '{"type": "function", "name": "now", "parameters": {}}', calls=[("now", "{}")], well_formed=False),
        Case("another-object", '{"answer": "name"}', content='{"answer": "name"}'),
        Case("unknown-name", '{"name": "Bob"}', content='{"name": "Bob"}', well_formed=False),
        Case("list", '[{"name": 1}]', content='[{"name": 1}]'),
        Case("wrong-json", '{"name": "now", "parameters": {]}', calls=[("now", "{]")], well_formed=False),
        Case(
            "built-in",
            "<|python_tag|>brave_search.call(query=\"weather in 'Paris'\")",
            calls=[("brave_search", '{"query": "weather in \'Paris\'"}')],
            tools=(SEARCH,),
            well_formed=False,
        ),
        Case("code", '<|python_tag|>print("hi")', content='print("hi")', well_formed=False),
        Case("function-in-text", "now() is a function.", content="now() is a function."),
    ),
)
