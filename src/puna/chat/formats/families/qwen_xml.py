"""Qwen 3-Coder, Qwen 3.5 and Nemotron 3.

<tool_call>
<function=get_weather>
<parameter=city>
Paris
</parameter>
<parameter=days>
2
</parameter>
</function>
</tool_call>
"""

from __future__ import annotations

from puna.chat.formats.bodies.tagged import Tagged
from puna.chat.formats.description import Calls, Description, Thinking

CALLS = Calls(
    body=Tagged(
        name_begin="<function=",
        name_end=">\n",
        key_begin="<parameter=",
        key_end=">\n",
        value_end="\n</parameter>\n",
        end="</function>",
    ),
    call_begin="<tool_call>\n",
    call_end="\n</tool_call>",
    between="\n",
)


def qwen_xml(thinking: Thinking | None = None) -> Description:
    """The format, with these tags for thoughts."""
    return Description(name="qwen-xml", thinking=thinking, calls=CALLS)
