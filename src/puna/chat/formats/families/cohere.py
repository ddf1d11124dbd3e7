"""Command R and R+, Command R7B and A, and North Mini Code.

Command R, which calls `directly-answer` where it needs no tool:

Action:
```json
[
    {
        "tool_name": "get_weather",
        "parameters": {"city": "Paris"}
    }
]```

Command R7B and the others; the answer is between `START_TEXT` and `END_TEXT` in North Mini Code:

<|START_THINKING|>It is about the weather.<|END_THINKING|><|START_ACTION|>[
    {"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Paris"}},
    {"tool_call_id": "1", "tool_name": "now", "parameters": {}}
]<|END_ACTION|>
<|START_RESPONSE|>It is warm.<|END_RESPONSE|>
"""

from __future__ import annotations

from puna.chat.formats.bodies.envelope import Envelope
from puna.chat.formats.description import Calls, Description, Thinking

_BRACKETS = ("[\n    ", "\n]")
_BETWEEN = ",\n    "

COMMAND_R = Description(
    name="command-r",
    calls=Calls(
        body=Envelope(name="tool_name", arguments="parameters", layout=("{\n        ", ",\n        ", "\n    }")),
        begin="Action:\n```json\n",
        also=("Action: ```json", "Action:```json"),
        end="```",
        array=True,
        brackets=_BRACKETS,
        between=_BETWEEN,
        silent=("directly-answer", "directly_answer"),
    ),
    before="\n",
)


def command_r7b(source: str) -> Description:
    """Command R7B and later; what surrounds answers is seen from the template."""
    kind = "TEXT" if "<|START_TEXT|>" in source else "RESPONSE"
    answer = (f"<|START_{kind}|>", f"<|END_{kind}|>")
    return Description(
        name="command-r7b",
        thinking=Thinking("<|START_THINKING|>", "<|END_THINKING|>", lead="", gap=""),
        calls=Calls(
            body=Envelope(
                name="tool_name",
                arguments="parameters",
                id="tool_call_id",
                id_pattern="[0-9]{1,4}",
                id_first=True,
                id_counts=True,
            ),
            begin="<|START_ACTION|>",
            end="<|END_ACTION|>",
            array=True,
            brackets=_BRACKETS,
            between=_BETWEEN,
        ),
        dropped=answer,
        answer_begin=answer[0],
        answer_end=answer[1],
    )
