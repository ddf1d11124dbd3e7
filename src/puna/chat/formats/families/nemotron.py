"""Nemotron Nano v2; Nemotron 3 writes as Qwen 3-Coder does.

<think>
It is about the weather.
</think>

<TOOLCALL>[{"name": "get_weather", "arguments": {"city": "Paris"}}, {"name": "now", "arguments": {}}]</TOOLCALL>
"""

from __future__ import annotations

from puna.chat.formats.bodies.envelope import Envelope
from puna.chat.formats.description import Calls, Description, Thinking

NEMOTRON_V2 = Description(
    name="nemotron-v2",
    thinking=Thinking(),
    calls=Calls(body=Envelope(), begin="<TOOLCALL>", end="</TOOLCALL>", array=True, between=", "),
    after="\n",
)
