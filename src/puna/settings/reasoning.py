"""Options of reasoning, for requests that do not say."""

from __future__ import annotations

from puna.settings.option import Option
from puna.settings.values import Integer, Text, choice

REASONING = "Reasoning defaults"

REASONING_OPTIONS = (
    Option(
        flags=("--reasoning", "-rea"),
        kind=choice("auto", "on", "off"),
        target="load.reasoning",
        also={"on": {"server.reasoning": True}, "off": {"server.reasoning": False}},
        variables=("LLAMA_ARG_REASONING",),
        group=REASONING,
        help="whether the model thinks before it answers; auto: what its template does by itself",
    ),
    Option(
        flags=("--reasoning-format",),
        kind=choice("auto", "none", "deepseek", "deepseek-legacy"),
        target="server.reasoning_format",
        variables=("LLAMA_ARG_THINK",),
        group=REASONING,
        help="auto, deepseek: thoughts are in reasoning_content; none: in content as written; deepseek-legacy: in both",
    ),
    Option(
        flags=("--reasoning-effort",),
        kind=Text("LEVEL"),
        target="server.reasoning_effort",
        variables=("LLAMA_ARG_REASONING_EFFORT",),
        group=REASONING,
        help="what the template is told of how much to think, such as low; none: not at all",
    ),
    Option(
        flags=("--reasoning-budget",),
        kind=Integer(-1),
        target="server.reasoning_budget",
        variables=("LLAMA_ARG_THINK_BUDGET",),
        group=REASONING,
        help="most tokens of thoughts, after which they are ended; -1: no limit",
    ),
    Option(
        flags=("--reasoning-budget-message",),
        kind=Text("TEXT"),
        target="server.reasoning_budget_message",
        variables=("LLAMA_ARG_THINK_BUDGET_MESSAGE",),
        group=REASONING,
        help="what the model is made to say to itself where the budget ends",
    ),
)
