"""Gemma 4.

<|channel>thought
It is about the weather.
<channel|><|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:2}<tool_call|>
"""

from __future__ import annotations

from puna.chat.formats.bodies.quoted import Quoted
from puna.chat.formats.description import Calls, Description, Thinking

GEMMA4 = Description(
    name="gemma4",
    thinking=Thinking("<|channel>thought", "<channel|>", gap="", again=True),
    calls=Calls(body=Quoted(before="call:", quote='<|"|>'), call_begin="<|tool_call>", call_end="<tool_call|>"),
    dropped=("<channel|>",),  # one more than there was to close is common
    extra=("<|channel>",),
)
