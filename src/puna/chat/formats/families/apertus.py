"""Apertus.

<|inner_prefix|>It is about the weather.<|inner_suffix|><|tools_prefix|>[{"get_weather": {"city": "Paris"}}]<|tools_suffix|>

Calls may also come in the middle of thoughts, which go on with the tools' results before them.
"""

from __future__ import annotations

from puna.chat.formats.bodies.named import Named
from puna.chat.formats.description import Calls, Description, Thinking

APERTUS = Description(
    name="apertus",
    thinking=Thinking("<|inner_prefix|>", "<|inner_suffix|>", gap="", lead="", calls_end=True),
    calls=Calls(
        body=Named(before='{"', behind='": ', after="}"),
        begin="<|tools_prefix|>",
        end="<|tools_suffix|>",
        between=", ",
        array=True,
    ),
)
