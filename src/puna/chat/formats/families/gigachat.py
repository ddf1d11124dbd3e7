"""GigaChat 3 and 3.1, which make one call a turn.

GigaChat 3, where the line ends belong to the control tokens:

I look it up.<|message_sep|>

function call<|role_sep|>
{"name": "get_weather", "arguments": {"city": "Paris"}}<|message_sep|>

GigaChat 3.1:

I look it up.<|function_call|>{"name": "get_weather", "arguments": {"city": "Paris"}}<|message_sep|>
"""

from __future__ import annotations

from puna.chat.formats.bodies.envelope import Envelope
from puna.chat.formats.description import Calls, Description

_END, _ROLE_END = "<|message_sep|>\n\n", "<|role_sep|>\n"

GIGACHAT3 = Description(
    name="gigachat3",
    calls=Calls(body=Envelope(), call_begin=f"{_END}function call{_ROLE_END}", exact=True, parallel=False),
    ends=(_END.strip(),),
    extra=(_END, _ROLE_END),
)

GIGACHAT3_1 = Description(
    name="gigachat3.1",
    calls=Calls(body=Envelope(), call_begin="<|function_call|>", parallel=False),
    ends=(_END.strip(),),
    extra=(_END,),
)
