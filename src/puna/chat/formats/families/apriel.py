"""Apriel 1.5 and 1.6, which think in plain sight.

Here are my reasoning steps:
It is about the weather.
[BEGIN FINAL RESPONSE]
I look it up.
<tool_calls>[{"name": "get_weather", "arguments": {"city": "Paris"}}]</tool_calls>
[END FINAL RESPONSE]

The prompt of 1.6 opens the thoughts; 1.5 opens them itself, and ends its answers with the last mark.
"""

from __future__ import annotations

from puna.chat.formats.bodies.envelope import Envelope
from puna.chat.formats.description import Calls, Description, Thinking

APRIEL = Description(
    name="apriel",
    thinking=Thinking("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]", gap="\n", calls_end=True),
    calls=Calls(body=Envelope(), begin="<tool_calls>", end="</tool_calls>", between=", ", array=True),
    before="\n",
    dropped=("[END FINAL RESPONSE]",),
)
