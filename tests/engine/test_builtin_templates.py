"""Templates by name give what llama.cpp's of the same name give."""

from __future__ import annotations

import ctypes

import pytest
from llama_cpp import llama_cpp

from puna.chat import ChatTemplate
from puna.chat_templates import BUILT_IN

ALWAYS_OPEN = {"rwkv-world"}
"""Those to which the engine adds the answer's opening whether it is asked for or not."""

CHAT = [("system", " Be brief "), ("user", " hi there "), ("assistant", " Hello "), ("user", "more é")]


def engine_text(name: str, chat: list[tuple[str, str]], add_generation_prompt: bool) -> str:
    Message = llama_cpp.llama_chat_message
    messages = (Message * len(chat))(*[Message(role.encode(), text.encode()) for role, text in chat])
    buffer = ctypes.create_string_buffer(4096)
    n = llama_cpp.llama_chat_apply_template(name.encode(), messages, len(chat), add_generation_prompt, buffer, len(buffer))
    assert n >= 0
    return buffer.raw[:n].decode()


@pytest.mark.parametrize("name", sorted(set(BUILT_IN) - {"plain"}))
@pytest.mark.parametrize("chat", [CHAT, CHAT[1:], CHAT[:2]])
def test_text_is_the_same(name: str, chat: list[tuple[str, str]]) -> None:
    template = ChatTemplate(BUILT_IN[name], bos_token="<s>", eos_token="</s>")
    for add in (True,) if name in ALWAYS_OPEN else (True, False):
        text = template.render([{"role": role, "content": content} for role, content in chat], None, add)
        assert text == engine_text(name, chat, add)
