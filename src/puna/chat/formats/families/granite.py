"""Granite 3.3; Granite 4 writes as Hermes does.

<think>It is about the weather.</think><response>I look it up.</response>
<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Paris"}}]
"""

from __future__ import annotations

from puna.chat.formats.bodies.envelope import Envelope
from puna.chat.formats.description import Calls, Description, Thinking

GRANITE3 = Description(
    name="granite3",
    thinking=Thinking(gap="", lead=""),
    calls=Calls(body=Envelope(), begin="<|tool_call|>", between=", ", array=True),
    wrapper=("<response>", "</response>"),
)
