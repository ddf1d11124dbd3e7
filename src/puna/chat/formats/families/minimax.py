"""MiniMax M1 and M2.

M1:

<tool_calls>
{"name": "get_weather", "arguments": {"city": "Paris"}}
{"name": "now", "arguments": {}}
</tool_calls>

M2:

<think>
It is about the weather.
</think>

<minimax:tool_call>
<invoke name="get_weather">
<parameter name="city">Paris</parameter>
<parameter name="days">2</parameter>
</invoke>
</minimax:tool_call>
"""

from __future__ import annotations

from puna.chat.formats.bodies.envelope import Envelope
from puna.chat.formats.bodies.tagged import Tagged
from puna.chat.formats.description import Calls, Description, Thinking

MINIMAX_M1 = Description(
    name="minimax-m1",
    thinking=Thinking(),  # the template does not show them, but the model writes them
    calls=Calls(body=Envelope(), begin="<tool_calls>\n", end="\n</tool_calls>", between="\n"),
)

MINIMAX_M2 = Description(
    name="minimax-m2",
    thinking=Thinking(),
    calls=Calls(
        body=Tagged(
            name_begin='<invoke name="',
            name_end='">\n',
            key_begin='<parameter name="',
            key_end='">',
            value_end="</parameter>\n",
            end="</invoke>\n",
        ),
        begin="<minimax:tool_call>\n",
        end="</minimax:tool_call>",
    ),
)
