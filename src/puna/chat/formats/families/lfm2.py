"""LFM2 and LFM2.5.

<think>It is about the weather.</think><|tool_call_start|>[get_weather(city="Paris", days=2)]<|tool_call_end|>

Models that are asked to write JSON make the items of the list objects.
"""

from __future__ import annotations

from puna.chat.formats.bodies.either import Either
from puna.chat.formats.bodies.envelope import Envelope
from puna.chat.formats.bodies.pythonic import Pythonic
from puna.chat.formats.description import Calls, Description, Thinking

_BODY = Pythonic()

CALLS = Calls(
    body=Either(Envelope(), _BODY, written=_BODY),
    begin="<|tool_call_start|>",
    end="<|tool_call_end|>",
    between=", ",
    array=True,
)


def lfm2(thinking: Thinking | None = None) -> Description:
    """The format, with these tags for thoughts."""
    return Description(name="lfm2", thinking=thinking, calls=CALLS)
