"""MiniCPM 5.

<think>
It is about the weather.
</think>

<function name="get_weather"><param name="city">Paris</param><param name="note"><![CDATA[a < b]]></param></function>
"""

from __future__ import annotations

from puna.chat.formats.bodies.tagged import Tagged
from puna.chat.formats.description import Calls, Description, Thinking

MINICPM5 = Description(
    name="minicpm5",
    thinking=Thinking(),
    calls=Calls(
        body=Tagged(
            name_begin="",
            name_end='">',
            key_begin='<param name="',
            key_end='">',
            value_end="</param>",
            end="</function>",
            quotes=("<![CDATA[", "]]>"),
        ),
        call_begin='<function name="',
        between="\n",
    ),
)
