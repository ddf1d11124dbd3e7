"""GLM 4.5 to 4.7, and those that write as they do: Laguna, Ling 3, Spark 2.5; with a mark after the name Hunyuan 3.

GLM 4.6, and Ling, which has a line end at the end of a call but none behind a value:

<think>It is about the weather.</think>
<tool_call>get_weather
<arg_key>city</arg_key>
<arg_value>Paris</arg_value>
<arg_key>days</arg_key>
<arg_value>2</arg_value>
</tool_call>

GLM 4.7, Laguna and Spark, the same without line ends:

<think>It is about the weather.</think><tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value></tool_call>

Hunyuan 3, where every tag ends in `:opensource` or the like:

<tool_calls:opensource>
<tool_call:opensource>get_weather<tool_sep:opensource>
<arg_key:opensource>city</arg_key:opensource>
<arg_value:opensource>Paris</arg_value:opensource>
</tool_call:opensource>
</tool_calls:opensource>
"""

from __future__ import annotations

import re

from puna.chat.formats.bodies.tagged import Tagged
from puna.chat.formats.description import Calls, Description, Thinking

_LINES = re.compile(r"</arg_key>(?:\n|\\n)")
_ENDS = ("</assistant>", "<|role_end|>")
"""Ends of turns that models spell out, too, instead of writing the control token."""
_SUFFIX = re.compile(r"set HYTK = '([^']*)'")


def glm(source: str) -> Description:
    """The format, with line ends where the template writes them, and the model too: not Laguna's."""
    line = "\n" if _LINES.search(source) and "laguna" not in source else ""
    late = "'\\n</tool_call>'" in source
    return Description(
        name="glm",
        thinking=Thinking(lead="", gap=line, calls_end=True),
        calls=Calls(
            body=Tagged(
                name_begin="",
                name_end=line,
                key_begin="<arg_key>",
                key_end="</arg_key>" + line,
                value_begin="<arg_value>",
                value_end="</arg_value>" + ("" if late else line),
            ),
            call_begin="<tool_call>",
            call_end="\n</tool_call>" if late else "</tool_call>",
            between=line,
        ),
        before="\n",
        after="\n",
        stop=tuple(text for text in _ENDS if text in source),
    )


def hunyuan(source: str) -> Description:
    """Hunyuan 3, with the ending of its tags that the template has."""
    found = _SUFFIX.search(source)
    end = (found.group(1) if found else ":opensource") + ">"
    return Description(
        name="hunyuan",
        thinking=Thinking(f"<think{end}", f"</think{end}", lead="", gap=""),
        calls=Calls(
            body=Tagged(
                name_begin="",
                name_end=f"<tool_sep{end}\n",
                key_begin=f"<arg_key{end}",
                key_end=f"</arg_key{end}\n",
                value_begin=f"<arg_value{end}",
                value_end=f"</arg_value{end}\n",
            ),
            begin=f"<tool_calls{end}\n",
            end=f"</tool_calls{end}",
            call_begin=f"<tool_call{end}",
            call_end=f"</tool_call{end}\n",
        ),
    )
