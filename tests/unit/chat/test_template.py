"""Templates render as Hugging Face's library renders them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from puna.chat import ChatTemplate
from puna.errors import InvalidRequest
from tests.unit.chat.helpers import each_template, made, real

MESSAGES = [{"role": "user", "content": " hi "}]


LANGUAGE = [
    ("{{ bos_token }}{{ messages[0].content }}{{ eos_token }}", "<s> hi </s>"),
    ("{% if true %}\n  a\n{% endif %}\nb", "  a\nb"),
    ("   {% if true %}a{% endif %}", "a"),
    ("{{ {'a': '<é>&\"', 'b': [1, 2.5, none, true]}|tojson }}", '{"a": "<é>&\\"", "b": [1, 2.5, null, true]}'),
    ("{{ {'b': 1, 'a': 'é'}|tojson(ensure_ascii=true, sort_keys=true) }}", '{"a": "\\u00e9", "b": 1}'),
    ("{{ {'a': [1]}|tojson(indent=2) }}", '{\n  "a": [\n    1\n  ]\n}'),
    ("{{ {'a': [1, 2]}|tojson(separators=(',', ':')) }}", '{"a":[1,2]}'),
    ("{% for i in 'abc' %}{% if i == 'a' %}{% continue %}{% elif i == 'c' %}{% break %}{% endif %}{{ i }}{% endfor %}", "b"),
    ("a{% generation %}b{% endgeneration %}c", "abc"),
    ("{% set x = 1 %}{% generation %}{% set x = 2 %}{{ x }}{% endgeneration %}{{ x }}", "21"),
    ("{{ strftime_now('%d %b %Y') }}", "02 Jan 2026"),
    ("{{ tools is defined }}{{ tools is none }}{{ documents is none }}", "TrueTrueTrue"),
    ("{{ nothing }}{{ nothing is defined }}", "False"),
    ("{{ 'a' ~ 1 ~ none ~ [1, 'x'] }}", "a1None[1, 'x']"),
    ("{{ '%s-%03d' % ('a', 7) }}{{ '{} {a:>3}'.format(1, a=2) }}{{ '%s!'|format('x') }}", "a-0071   2x!"),
    ("{{ 'a,b'.split(',')|join('+') }}{{ ','.join(['x', 'y']) }}{{ [1, 2]|join(',') }}", "a+bx,y1,2"),
    ("{{ messages|map(attribute='role')|list }}{{ [3, 1]|sort }}", "['user'][1, 3]"),
    ("{{ [[1], [2]]|sum(start=[]) }}{{ [1, 2]|sum }}{{ [{'a': 1}, {'a': 2}]|sum('a') }}", "[1, 2]33"),
    ("{{ messages[::-1]|length }}{{ 'abc'[1:] }}{{ 'abc'[::-1] }}{{ (1, 2)[:1] }}", "1bccba(1,)"),
    ("{% set n = namespace(a=1) %}{% for i in [2, 3] %}{% set n.a = n.a * i %}{% endfor %}{{ n.a }}", "6"),
    ("{{ 2**10 }} {{ 2**-1 }} {{ 7 // 2 }} {{ 7 % 4 }} {{ 7 / 2 }} {{ 2 - 3 }} {{ -2 * 'ab' }}", "1024 0.5 3 3 3.5 -1 "),
    ("{% macro m(x, y='d') %}{{ x }}{{ y }}{% endmacro %}{{ m(1) }}{{ m(2, y=3) }}", "1d23"),
    ("{% macro m(x) %}{{ x }}{{ caller() }}{% endmacro %}{% call m(2) %}c{% endcall %}", "2c"),
    ("{% for k, v in {'a': 1}.items() %}{{ loop.index }}{{ loop.last }}{{ k }}{{ v }}{% else %}none{% endfor %}", "1Truea1"),
    ("{% for x in [1, [2, [3]]] recursive %}{{ loop(x) if x is iterable else x }}{% endfor %}", "123"),
    ("{% filter upper %}a{{ 'b' }}{% endfilter %}{% set x %}c{{ 1 }}{% endset %}{{ x|trim }}", "ABc1"),
    ("{{ dict(a=1)|tojson }}{{ dict([['b', 2]]) }}{{ messages[0].get('x', 'd') }}", '{"a": 1}{\'b\': 2}d'),
    ("{{ 'x'|safe + '<' }}{{ '<'|e }}", "x<&lt;"),
    ("{{ 'a-b' | replace('-', '+') | upper | indent(2, true) }}", "  A+B"),
]  # fmt: skip
"""What templates are made of, and what becomes of it on the second of January 2026."""


@pytest.mark.parametrize(("source", "text"), LANGUAGE)
def test_language(source: str, text: str) -> None:
    template = ChatTemplate(source, bos_token="<s>", eos_token="</s>", now=lambda: datetime(2026, 1, 2))
    assert template.render(MESSAGES) == text


def test_variables_reach_the_template() -> None:
    source = "{{ tools|tojson }}{{ add_generation_prompt }}{{ enable_thinking }}"
    tools: list[dict[str, Any]] = [{"type": "function"}]
    assert made(source).render(MESSAGES, tools, False, enable_thinking=False) == '[{"type": "function"}]FalseFalse'


def test_refusal_carries_the_templates_own_message_alone() -> None:
    with pytest.raises(InvalidRequest) as caught:
        made("secret source {{ raise_exception('Roles must alternate: ' + messages[0].role) }}").render(MESSAGES)
    assert caught.value.message == "Roles must alternate: user"
    assert caught.value.param == "messages"


def test_long_refusal_is_cut() -> None:
    with pytest.raises(InvalidRequest) as caught:
        made("{{ raise_exception('x' * 5000) }}").render(MESSAGES)
    assert 250 < len(caught.value.message) < 300


@pytest.mark.parametrize(
    "source", ["{{ messages[0].a.b }}", "{{ 'a' + 1 }}", "{{ 1 / 0 }}", "{{ 'a'|int(1, 2, 3) }}", "{{ messages() }}"]
)
def test_failure_is_a_bad_request_without_source(source: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        made("SOURCE" + source).render(MESSAGES)
    assert len(caught.value.message) < 300
    assert "SOURCE" not in caught.value.message


@pytest.mark.parametrize("source", ["{% if %}", "{{ 'a", "{% nothing %}", "{{ x|nothing }}", "{% for x in y %}", "x" * 300_000])
def test_bad_source_is_refused_at_construction(source: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        made(source)
    assert caught.value.param == "chat_template"
    assert len(caught.value.message) < 300


def test_bad_source_is_located() -> None:
    with pytest.raises(InvalidRequest, match=r"\(line 3\)$"):
        made("a\nb\n{% if %}")


@each_template
def test_real_template_compiles_and_renders(name: str) -> None:
    template = real(name)
    messages = [{"role": "user", "content": "hello there"}]
    text = template.render(messages, template.capabilities.empty_tools)
    assert text.count("hello there") == 1
    assert text == template.render(messages, template.capabilities.empty_tools)


def test_variables_that_one_family_has_by_convention() -> None:
    template = ChatTemplate(
        "{{ functions }} {{ datetime }}", bos_token="", eos_token="", now=lambda: datetime(2026, 1, 2, 3, 4, 5)
    )
    assert template.render(MESSAGES) == "[] 2026-01-02 03:04:05"
    assert template.render(MESSAGES, [{"a": 1}]).startswith('[\n    {\n        "a": 1')
    assert template.render(MESSAGES, functions="mine", datetime="then") == "mine then"


QWEN3 = "<|im_start|>system\nBe brief<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
LLAMA32 = (
    "<s><|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"
    "Be brief<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Qwen-Qwen3-0.6B", QWEN3),
        ("Qwen-Qwen2.5-7B-Instruct", QWEN3),
        ("meta-llama-Llama-3.2-3B-Instruct", LLAMA32),
        ("mistralai-Mistral-Nemo-Instruct-2407", "<s>[INST]Be brief\n\nhi[/INST]"),
        ("microsoft-Phi-3.5-mini-instruct", "<|system|>\nBe brief<|end|>\n<|user|>\nhi<|end|>\n<|assistant|>\n"),
    ],
)
def test_real_template_gives_the_models_format(name: str, text: str) -> None:
    messages = [{"role": "system", "content": "Be brief"}, {"role": "user", "content": "hi"}]
    assert real(name).render(messages, date_string="26 Jul 2024") == text


def test_a_namespaces_list_takes_and_gives() -> None:
    source = (
        "{% set ns = namespace(q=[]) %}{% for i in [1, 2, 3, 4] %}{% set _ = ns.q.append(i) %}{{ _ }}{% endfor %}"
        "{% set a = ns.q.pop(0) %}{% set b = ns.q.pop() %}{% set c = ns.q.pop(-1) %}{{ [a, b, c, ns.q] }}"
    )
    assert made(source).render(MESSAGES) == "NoneNoneNoneNone[1, 4, 3, [2]]"


def test_what_map_gives_is_json_too() -> None:
    assert made("{{ messages|map(attribute='role')|tojson }}").render(MESSAGES) == '["user"]'
