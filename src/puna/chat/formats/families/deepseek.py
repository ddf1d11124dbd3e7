"""DeepSeek R1, V3.1, V3.2 and V4.

R1:

<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather
```json
{"city": "Paris"}
```<｜tool▁call▁end｜><｜tool▁calls▁end｜>

V3.1:

<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Paris"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>

V3.2, and V4 with `tool_calls` instead of `function_calls`:

<｜DSML｜function_calls>
<｜DSML｜invoke name="get_weather">
<｜DSML｜parameter name="city" string="true">Paris</｜DSML｜parameter>
<｜DSML｜parameter name="days" string="false">2</｜DSML｜parameter>
</｜DSML｜invoke>
</｜DSML｜function_calls>
"""

from __future__ import annotations

from puna.chat.formats.bodies.named import Named
from puna.chat.formats.bodies.tagged import Tagged
from puna.chat.formats.description import Calls, Description, Thinking

_THINKING = Thinking("<think>", "</think>", calls_end=True)
_CLOSE_THINKING = Thinking("<think>", "</think>", gap="", lead="", calls_end=True)
_SECTION = ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")
_CALL = ("<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>")
_TOKEN = "｜DSML｜"

R1 = Description(
    name="deepseek-r1",
    thinking=_THINKING,
    calls=Calls(
        body=Named(before="function<｜tool▁sep｜>", behind="\n```json\n", after="\n```"),
        begin=_SECTION[0],
        end=_SECTION[1],
        call_begin=_CALL[0],
        call_end=_CALL[1],
        between="\n",
    ),
    extra=("<｜tool▁sep｜>",),
)

V3_1 = Description(
    name="deepseek-v3.1",
    thinking=_CLOSE_THINKING,
    calls=Calls(body=Named(behind="<｜tool▁sep｜>"), begin=_SECTION[0], end=_SECTION[1], call_begin=_CALL[0], call_end=_CALL[1]),
)


def dsml(name: str, section: str) -> Description:
    """V3.2 and later; `section` is what they call a section of calls."""
    return Description(
        name=name,
        thinking=_CLOSE_THINKING,
        calls=Calls(
            body=Tagged(
                name_begin=f'<{_TOKEN}invoke name="',
                name_end='">\n',
                key_begin=f'<{_TOKEN}parameter name="',
                key_end='" string="true">',
                json_key_end='" string="false">',
                value_end=f"</{_TOKEN}parameter>\n",
                end=f"</{_TOKEN}invoke>\n",
            ),
            begin=f"<{_TOKEN}{section}>\n",
            end=f"</{_TOKEN}{section}>",
        ),
        extra=(_TOKEN,),
    )


V3_2 = dsml("deepseek-v3.2", "function_calls")
V4 = dsml("deepseek-v4", "tool_calls")
