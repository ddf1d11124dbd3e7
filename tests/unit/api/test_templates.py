"""Which template a conversation is rendered with, and what the command line says of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from puna.chat_templates import BUILT_IN
from puna.service.templates import MAX_KEPT
from tests.fakes import FACTS, FakeEngine
from tests.web import client

OWN = "own {% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}{% if add_generation_prompt %}[{% endif %}"
WITH_TOOLS = "tools {% for t in tools or [] %}{{ t.function.name }}{% endfor %} {{ messages[0].content }}"
JINJA = "mine {{ messages[0].content }}"
HI = [{"role": "user", "content": "hi"}]
TOOLS = [{"type": "function", "function": {"name": "f"}}]


def engine() -> FakeEngine:
    fake = FakeEngine()
    fake.facts = msgspec.structs.replace(
        FACTS, chat_template=OWN, chat_template_variants={"tool_use": WITH_TOOLS, "rag": "rag {{ messages[0].content }}"}
    )
    return fake


async def apply(body: dict[str, Any], **settings: Any) -> tuple[int, Any]:
    async with client(engine(), **settings) as http:
        reply = await http.post("/apply-template", json={"messages": HI, **body})
    return reply.status_code, reply.json()


@pytest.mark.parametrize(
    "body, prompt",
    [
        ({}, "own [user:hi]["),
        ({"tools": TOOLS}, "tools f hi"),
        ({"tools": TOOLS, "tool_choice": "none"}, "own [user:hi]["),
        ({"tools": []}, "own [user:hi]["),
        ({"template": "rag"}, "rag hi"),
        ({"chat_template": "tool_use", "tools": TOOLS}, "tools f hi"),
        ({"chat_template": "chatml"}, "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"),
        ({"template": "Llama3", "chat_template": "Llama3"}, None),
        ({"template": "phi3", "tools": TOOLS, "tool_choice": "none"}, "<|user|>\nhi<|end|>\n<|assistant|>\n"),
    ],
)
async def test_a_template_is_chosen(body: dict[str, Any], prompt: str | None) -> None:
    status, reply = await apply(body)
    assert status == 200
    assert reply["prompt"] == prompt if prompt is not None else "<|eot_id|>" in reply["prompt"]


@pytest.mark.parametrize(
    "body, param, words",
    [
        ({"chat_template": JINJA}, "chat_template", "not accepted"),
        ({"template": JINJA}, "template", "--request-templates"),
        ({"template": "nothing"}, "template", "no chat template called 'nothing'; known: tool_use, rag, chatml"),
        ({"template": ""}, "template", "no chat template"),
        ({"template": 5}, "template", ""),
        ({"template": "chatml", "chat_template": "phi3"}, "template", "another one"),
    ],
)
async def test_other_templates_are_refused(body: dict[str, Any], param: str, words: str) -> None:
    status, reply = await apply(body)
    assert status == 400 and reply["error"]["param"] == param and words in reply["error"]["message"]


async def test_jinja_of_a_request_where_it_is_allowed() -> None:
    assert await apply({"template": JINJA}, request_templates=True) == (200, {"prompt": "mine hi"})
    status, reply = await apply({"chat_template": "{% if %}"}, request_templates=True)
    assert status == 400 and reply["error"]["param"] == "chat_template" and "does not compile" in reply["error"]["message"]


async def test_jinja_of_a_request_is_not_too_long() -> None:
    status, reply = await apply({"template": "{{ 1 }}" * 10_000}, request_templates=True)
    assert status == 400 and reply["error"]["param"] == "template" and "65536" in reply["error"]["message"]


async def test_many_templates_of_requests_are_not_all_kept() -> None:
    async with client(engine(), request_templates=True) as http:
        for number in [*range(MAX_KEPT + 1), 0, MAX_KEPT]:
            body = {"messages": HI, "template": f"{number} {{{{ messages[0].content }}}}"}
            assert (await http.post("/apply-template", json=body)).json() == {"prompt": f"{number} hi"}


async def test_a_configured_template_replaces_all_of_the_models() -> None:
    assert await apply({"tools": TOOLS}, chat_template=JINJA + "{{ tools|tojson }}") != (200, {"prompt": "tools f hi"})
    status, _ = await apply({"template": "rag"}, chat_template=JINJA)
    assert status == 400


@pytest.mark.parametrize(
    "fields, shown",
    [
        ({}, "1 2"),
        ({"chat_template_kwargs": {"b": 3}}, "1 3"),
        ({"chat_template_kwargs": {"a": None, "c": 4}}, "None 2"),
    ],
)
async def test_configured_variables_are_what_requests_do_not_say(fields: dict[str, Any], shown: str) -> None:
    template = "{{ a }} {{ b }}"
    assert await apply(fields, chat_template=template, chat_template_kwargs={"a": 1, "b": 2}) == (200, {"prompt": shown})


@pytest.mark.parametrize(
    "fields, prompt",
    [
        ({}, "own [user:hi][assistant:Sure"),
        ({"continue_final_message": True}, "own [user:hi][assistant:Sure"),
        ({"continue_final_message": False}, "own [user:hi][assistant:Sure]["),
        ({"add_generation_prompt": True}, "own [user:hi][assistant:Sure]["),
        ({"add_generation_prompt": False}, "own [user:hi][assistant:Sure]"),
        ({"add_generation_prompt": False, "continue_final_message": True}, "own [user:hi][assistant:Sure"),
        ({"add_generation_prompt": False, "continue_final_message": False}, "own [user:hi][assistant:Sure]"),
        ({"add_generation_prompt": True, "continue_final_message": False}, "own [user:hi][assistant:Sure]["),
    ],
)
@pytest.mark.parametrize("prefill", [True, False])
async def test_a_prefill(fields: dict[str, Any], prompt: str, prefill: bool) -> None:
    body = {"messages": [*HI, {"role": "assistant", "content": "Sure"}], **fields}
    if not fields and not prefill:
        prompt = "own [user:hi][assistant:Sure]["
    assert await apply(body, prefill_assistant=prefill) == (200, {"prompt": prompt})


async def test_a_prefill_with_tools() -> None:
    body = {"messages": [*HI, {"role": "assistant", "content": "Sure"}], "tools": TOOLS, "template": "chatml"}
    status, reply = await apply(body)
    assert status == 200 and reply["prompt"].endswith("<|im_start|>assistant\nSure")
    assert "call these functions" in reply["prompt"] and '"name": "f"' in reply["prompt"]


async def test_props_show_both_templates() -> None:
    async with client(engine()) as http:
        props = (await http.get("/props")).json()
    assert (props["chat_template"], props["chat_template_tool_use"]) == (OWN, WITH_TOOLS)
    async with client(engine(), chat_template=BUILT_IN["chatml"]) as http:
        assert "chat_template_tool_use" not in (await http.get("/props")).json()


async def test_a_model_that_brings_only_a_name() -> None:
    fake = FakeEngine()
    fake.facts = msgspec.structs.replace(FACTS, chat_template="rwkv-world")
    async with client(fake) as http:
        reply = await http.post("/apply-template", json={"messages": HI})
    assert reply.json() == {"prompt": "User: hi\n\nAssistant:"}
