"""Hermes 2 and 3, Qwen 2.5 and 3, and the many models that were trained on their form.

<think>
It is about the weather, so I ask.
</think>

<tool_call>
{"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}
</tool_call>
"""

from __future__ import annotations

from dataclasses import replace

from puna.chat.formats.bodies.envelope import Envelope
from puna.chat.formats.description import Calls, Description, Thinking

CALLS = Calls(
    body=Envelope(),
    call_begin="<tool_call>\n",
    call_end="\n</tool_call>",
    between="\n",
)


def hermes(thinking: Thinking | None = None) -> Description:
    """The format, with these tags for thoughts."""
    return Description(name="hermes", thinking=thinking, calls=CALLS)


REKA = Description(name="reka", thinking=Thinking(), calls=replace(CALLS, between=""), before=" ")
"""Reka Edge, whose prompts end with a colon, and which writes nothing between calls."""
