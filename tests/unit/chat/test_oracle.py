"""Rendering equals that of Hugging Face's `transformers`, or the difference is listed here."""

from __future__ import annotations

import json
from datetime import datetime
from html import unescape
from typing import Any

import pytest

from puna.chat import ChatTemplate
from puna.chat.prepare import prepare
from puna.chat.tool_schemas import complete_tools
from puna.chat.values import as_template_value
from tests.unit.chat.conversations import CASES
from tests.unit.chat.differences import DIFFERENCES, ESCAPED
from tests.unit.chat.helpers import NOW, each_template, real
from tests.unit.chat.test_template import LANGUAGE, MESSAGES

oracle = pytest.importorskip("transformers.utils.chat_template_utils", reason="transformers is not installed")


@pytest.fixture(autouse=True)
def one_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Clock:
            return cls(*NOW.timetuple()[:6])

    monkeypatch.setattr(oracle, "datetime", Clock)


def expected(source: str, messages: list[dict[str, Any]], tools: Any, add_generation_prompt: bool) -> str:
    variables = {"documents": None, "bos_token": "<s>", "eos_token": "</s>", "messages": messages, "tools": tools}
    # FireFunction's own tokenizer sets these two.
    variables["functions"] = json.dumps(tools or [], indent=4, ensure_ascii=False)
    variables["datetime"] = NOW.strftime("%Y-%m-%d %H:%M:%S")
    template = oracle._compile_jinja_template(source)
    return str(template.render(**variables, add_generation_prompt=add_generation_prompt))


@each_template
def test_real_templates(name: str) -> None:
    template = real(name)
    capabilities = template.capabilities
    listed, reason = DIFFERENCES.get(name, ((), ""))
    for case, (messages, tools) in CASES.items():
        values = [as_template_value(message, capabilities) for message in prepare(messages, capabilities, tools)]
        given: Any = complete_tools(tools, capabilities) if tools and capabilities.tools else None
        given = given or capabilities.empty_tools
        add = case not in ("prefill", "odd text")
        text = template.render(values, given, add)
        if case in listed and reason is ESCAPED:
            other = expected(template.source, values, given, add)
            assert "&lt;now&gt;" in other and unescape(other) == unescape(text)
        elif case in listed:
            with pytest.raises(Exception, match=r"unsafe|not JSON serializable"):
                expected(template.source, values, given, add)
        else:
            assert text == expected(template.source, values, given, add), case


@pytest.mark.parametrize("source", [source for source, _ in LANGUAGE if "|safe" not in source])
def test_language(source: str) -> None:
    template = ChatTemplate(source, bos_token="<s>", eos_token="</s>", now=lambda: NOW)
    assert template.render(MESSAGES, add_generation_prompt=False) == expected(source, MESSAGES, None, False)


WHITESPACE = [
    "a\n  {% if true %}  \n  b\n  {%- endif %}\n c \n{% endif %}"[:-12],
    "  {%- for x in [1, 2] -%}  {{ x }}  {%- endfor %}  \n\n{# note #}\n  {# note -#}\n end\n",
    "{%+ if true %} x {% endif +%}\n y\n\n",
    "\n\n{{ 1 }}\n\n{{- 2 -}}\n\n 3\n",
    "\t{% set x = 'é' %}\n{{ x }}\r\n\r\n{{ x }}\r",
    "{% raw %}{{ x }}\n{% endraw %}\n {% filter trim %}  y {% endfilter %}\n",
    "{% generation %}\n  a {% endgeneration %}\n b {% generation -%} c {%- endgeneration %}",
    "{% for i in [1, 2, 7] %}{% if i == 1 %}{% continue %}{% endif %}\n{% if i > 5 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "{{ {'é': [1, 1.0, 1e30, none, true, '\\u2028</script>\"\\\\']} | tojson }}",
    "{{ [{'b': {}, 'a': []}] | tojson(indent=4, sort_keys=true) }}{{ [1, {'a': 2}] | tojson(separators=(', ', ':'), indent=1) }}",
    "{{ {'a': 'é漢🙂'} | tojson(ensure_ascii=true) }}{{ '🙂' | tojson }}",
    "{{ strftime_now('%A %d %B %Y %H:%M:%S %j') }}",
    "{{ messages | length }}{{ undefined_one }}{{ undefined_one is defined }}{{ none }}{{ [none, 1.50] }}{{ 1e100 }}",
    "{{ '%5.2f|%r' % (1.005, 'x') }}{{ 'a\nb' | indent(3) }}{{ 'x y' | title }}{{ [3, 1] | sort | join('-') }}",
    "{{ {'a': 1} | items | list }}{{ {'b': 1, 'a': 2} | dictsort }}{{ 'abc' | list }}{{ [1, 2, 3][-1] }}{{ 'a' in 'abc' }}",
]


@pytest.mark.parametrize("source", WHITESPACE)
def test_whitespace_json_and_dates(source: str) -> None:
    template = ChatTemplate(source, bos_token="<s>", eos_token="</s>", now=lambda: NOW)
    assert template.render(MESSAGES, add_generation_prompt=False) == expected(source, MESSAGES, None, False)
