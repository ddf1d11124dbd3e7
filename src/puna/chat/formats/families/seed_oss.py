"""Seed-OSS.

<seed:think>It is about the weather.</seed:think>
<seed:tool_call>
<function=get_weather>
<parameter=city>Paris</parameter>
<parameter=days>2</parameter>
</function>
</seed:tool_call>

Thoughts have `<seed:cot_budget_reflect>` in them where there is a budget. Lists and objects may be written as Python writes them.
"""

from __future__ import annotations

from puna.chat.formats.bodies.tagged import Tagged
from puna.chat.formats.description import Calls, Description, Thinking

SEED_OSS = Description(
    name="seed-oss",
    thinking=Thinking("<seed:think>", "</seed:think>", gap="\n"),
    calls=Calls(
        body=Tagged(
            name_begin="<function=",
            name_end=">\n",
            key_begin="<parameter=",
            key_end=">",
            value_end="</parameter>\n",
            end="</function>",
        ),
        call_begin="<seed:tool_call>\n",
        call_end="\n</seed:tool_call>",
        between="\n",
    ),
)
