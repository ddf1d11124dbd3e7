"""Kimi K2, K2-Thinking and K3.

K2, whose calls' ids hold the name and a number:

<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Paris"}
<|tool_call_end|><|tool_calls_section_end|>

K3, on one line:

<|open|>think<|sep|>It is about the weather.<|close|>think<|sep|><|open|>response<|sep|>Let me look.<|close|>response<|sep|>
<|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|>
<|open|>argument key="city" type="string"<|sep|>Paris<|close|>argument<|sep|>
<|open|>argument key="days" type="number"<|sep|>2<|close|>argument<|sep|>
<|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>
"""

from __future__ import annotations

import re

from puna.chat.formats.bodies.named import Named
from puna.chat.formats.bodies.tagged import Tagged
from puna.chat.formats.description import Calls, Description, Thinking
from puna.outline import Node, Pattern, seq

_ID = re.compile(r"(?:functions\.)?(.+?)(?::\d+)?")


def _spell(name: str) -> Node:
    return seq("functions.", name, ":", Pattern("[0-9]{1,4}"))


def _read(text: str) -> tuple[str, str | None]:
    found = _ID.fullmatch(text)
    name = found.group(1) if found else ""
    return name, text if text != name else None


def kimi_k2(thinking: Thinking | None = None) -> Description:
    """K2 and K2-Thinking; thoughts may hold the calls."""
    return Description(
        name="kimi-k2",
        thinking=None if thinking is None else Thinking(lead="", gap="", calls_end=True),
        calls=Calls(
            body=Named(behind="<|tool_call_argument_begin|>", spell=_spell, read=_read),
            begin="<|tool_calls_section_begin|>",
            end="<|tool_calls_section_end|>",
            call_begin="<|tool_call_begin|>",
            call_end="<|tool_call_end|>",
        ),
    )


_OPEN, _CLOSE, _SEP = "<|open|>", "<|close|>", "<|sep|>"

KIMI_K3 = Description(
    name="kimi-k3",
    thinking=Thinking(f"{_OPEN}think{_SEP}", f"{_CLOSE}think{_SEP}", lead="", gap=""),
    calls=Calls(
        body=Tagged(
            name_begin=f'{_OPEN}call tool="',
            name_end='"',
            name_more=seq(' index="', Pattern("[0-9]{1,4}"), '"'),
            name_close=_SEP,
            key_begin=f'{_OPEN}argument key="',
            key_end='"',
            type_begin=' type="',
            value_begin=_SEP,
            value_end=f"{_CLOSE}argument{_SEP}",
            end=f"{_CLOSE}call{_SEP}",
        ),
        begin=f"{_OPEN}tools{_SEP}",
        end=f"{_CLOSE}tools{_SEP}",
    ),
    dropped=(
        f'{_OPEN}message role="assistant"{_SEP}',
        f"{_OPEN}response{_SEP}",
        f"{_CLOSE}response{_SEP}",
        f"{_CLOSE}message{_SEP}",
    ),
    answer_begin=f"{_OPEN}response{_SEP}",
    answer_end=f"{_CLOSE}response{_SEP}",
    answer_first=True,
    extra=(_OPEN, _CLOSE, _SEP),
    stop=("<|end_of_msg|>",),
)
