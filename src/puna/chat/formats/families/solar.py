"""Solar Open, whose turn is a row of messages.

<|think|>It is about the weather.<|end|><|begin|>assistant<|tool_calls|><|tool_call:begin|>a1b2c3d4e5<|tool_call:name|>get_weather
<|tool_call:args|>{"city": "Paris"}<|tool_call:end|><|calls|>
<|content|>It is warm.<|end|>
"""

from __future__ import annotations

from puna.chat.formats.bodies.named import Named
from puna.chat.formats.description import Calls, Description, Thinking
from puna.outline import Node, Pattern, seq

_NAME = "<|tool_call:name|>"
_NEXT = "<|begin|>assistant"


def _spell(name: str) -> Node:
    return seq(Pattern("[a-z0-9]{10}"), _NAME, name)


def _read(text: str) -> tuple[str, str | None]:
    own_id, _, name = text.rpartition(_NAME)
    return name.strip(), own_id.strip() or None


SOLAR_OPEN = Description(
    name="solar-open",
    thinking=Thinking("<|think|>", "<|end|>", lead="", gap=_NEXT),
    calls=Calls(
        body=Named(spell=_spell, behind="<|tool_call:args|>", read=_read, extra=(_NAME,)),
        begin="<|tool_calls|>",
        end="<|calls|>",
        call_begin="<|tool_call:begin|>",
        call_end="<|tool_call:end|>",
    ),
    dropped=(_NEXT, "<|content|>", "<|end|>", "<|flush|>"),
    answer_begin="<|content|>",
    answer_end="<|end|>",
    extra=("<|begin|>",),
    stop=("<|begin|>user", "<|begin|>tool"),
)
