"""MiniMax M1, M2 and M3.

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

M3, where what is between square brackets comes before every tag of a call (here it is left out but for the first):

<mm:think>It is about the weather.</mm:think>]<]minimax[>[<tool_call>
<invoke name="get_weather"><city>Paris</city><where><lat>48.8</lat></where><names><item>a</item><item>b</item></names></invoke>
</tool_call>
"""

from __future__ import annotations

from puna.chat.formats.bodies.elements import Elements
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

_TAG = "]<]minimax[>["

MINIMAX_M3 = Description(
    name="minimax-m3",
    thinking=Thinking("<mm:think>", "</mm:think>", lead="", gap="", bare_end=True),
    calls=Calls(
        body=Elements(
            name_begin=f'{_TAG}<invoke name="',
            name_end='">',
            end=f"{_TAG}</invoke>\n",
            tag=_TAG,
        ),
        begin=f"{_TAG}<tool_call>\n",
        end=f"{_TAG}</tool_call>",
    ),
    extra=(_TAG, "<tool_call>", "</tool_call>"),
)
