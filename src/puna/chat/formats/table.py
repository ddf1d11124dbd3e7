"""Which family's format a template speaks. The first line whose test holds counts, so what is more special comes first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.description import Description
from puna.chat.formats.families.apertus import APERTUS
from puna.chat.formats.families.apriel import APRIEL
from puna.chat.formats.families.cohere import COMMAND_R, command_r7b
from puna.chat.formats.families.deepseek import R1, V3_1, V3_2, V4
from puna.chat.formats.families.firefunction import FIREFUNCTION
from puna.chat.formats.families.functionary import FUNCTIONARY3_1, Functionary
from puna.chat.formats.families.gemma4 import GEMMA4
from puna.chat.formats.families.gigachat import GIGACHAT3, GIGACHAT3_1
from puna.chat.formats.families.glm import glm, hunyuan
from puna.chat.formats.families.gpt_oss import Harmony
from puna.chat.formats.families.granite import GRANITE3
from puna.chat.formats.families.hermes import REKA, hermes
from puna.chat.formats.families.kimi import KIMI_K3, kimi_k2
from puna.chat.formats.families.lfm2 import lfm2
from puna.chat.formats.families.llama3 import LLAMA3
from puna.chat.formats.families.minicpm5 import MINICPM5
from puna.chat.formats.families.minimax import MINIMAX_M1, MINIMAX_M2, MINIMAX_M3
from puna.chat.formats.families.mistral import NEMO, mistral
from puna.chat.formats.families.muse import Muse
from puna.chat.formats.families.nemotron import NEMOTRON_V2
from puna.chat.formats.families.qwen_xml import qwen_xml
from puna.chat.formats.families.seed_oss import SEED_OSS
from puna.chat.formats.families.solar import SOLAR_OPEN
from puna.chat.formats.generic import generic
from puna.chat.formats.plan import Format
from puna.chat.formats.thoughts import thinking_of


@dataclass(frozen=True)
class Family:
    """One line of the table."""

    name: str
    texts: tuple[str, ...]
    """All of them are in the template's source."""
    make: Callable[[str], Format]
    """Makes the format out of the source."""
    unless: tuple[str, ...] = ()
    """None of them is."""

    def knows(self, source: str) -> bool:
        """Whether a template is this family's."""
        return all(text in source for text in self.texts) and not any(text in source for text in self.unless)


def described(make: Callable[[str], Description]) -> Callable[[str], Format]:
    """A format by description."""
    return lambda source: DescribedFormat(make(source))


TABLE: tuple[Family, ...] = (
    Family("gpt-oss", ("<|channel|>analysis<|message|>", "<|start|>assistant"), lambda source: Harmony()),
    Family("deepseek-v4", ("｜DSML｜", "tool_calls>"), described(lambda source: V4)),
    Family("deepseek-v3.2", ("｜DSML｜", "function_calls>"), described(lambda source: V3_2)),
    Family("deepseek-r1", ("<｜tool▁calls▁begin｜>", "```json"), described(lambda source: R1)),
    Family("deepseek-v3.1", ("<｜tool▁calls▁begin｜>", "<｜tool▁sep｜>"), described(lambda source: V3_1)),
    Family("mistral", ("[TOOL_CALLS]", "[ARGS]"), described(mistral)),
    Family("mistral-nemo", ("[TOOL_CALLS]",), described(lambda source: NEMO)),
    Family("functionary-v3.2", (">>>all", ">>>${recipient}"), lambda source: Functionary()),
    Family("functionary-v3.1", ("<function=", "</function>", "<|start_header_id|>"), described(lambda source: FUNCTIONARY3_1)),
    Family("firefunction", ("functools[", '"arguments"'), described(lambda source: FIREFUNCTION)),
    Family("llama3", ("<|start_header_id|>", '{"name": function name, "parameters":'), described(lambda source: LLAMA3)),
    Family("muse", ("<atem:function_calls>", "<|eom|>", "to=self"), lambda source: Muse()),
    Family("kimi-k3", ("<|open|>", "<|close|>", "<|sep|>"), described(lambda source: KIMI_K3)),
    Family(
        "kimi-k2",
        ("<|tool_calls_section_begin|>", "<|tool_call_argument_begin|>"),
        described(lambda source: kimi_k2(thinking_of(source))),
    ),
    Family("minimax-m3", ("]<]minimax[>[", "<tool_call>"), described(lambda source: MINIMAX_M3)),
    Family("gemma4", ("<|tool_call>call:", "<|channel>"), described(lambda source: GEMMA4)),
    Family("minimax-m2", ("<minimax:tool_call>", "<invoke name="), described(lambda source: MINIMAX_M2)),
    Family("minimax-m1", ("<tool_calls>", '"arguments"', "<beginning_of_sentence>"), described(lambda source: MINIMAX_M1)),
    Family("seed-oss", ("<seed:tool_call>", "<function="), described(lambda source: SEED_OSS)),
    Family("nemotron-v2", ("<TOOLCALL>", '"arguments"'), described(lambda source: NEMOTRON_V2)),
    Family("command-r7b", ("<|START_ACTION|>", '"tool_name"'), described(command_r7b)),
    Family("command-r", ("Action:", '"tool_name"', "```json"), described(lambda source: COMMAND_R)),
    Family("solar-open", ("<|tool_calls|>", "<|tool_call:args|>"), described(lambda source: SOLAR_OPEN)),
    Family("hunyuan", ("<tool_sep{}>", "<arg_key{}>"), described(hunyuan)),
    Family("glm", ("<tool_call>", "<arg_key>", "<arg_value>"), described(glm)),
    Family("lfm2", ("List of tools: ", "<|im_start|>"), described(lambda source: lfm2(thinking_of(source)))),
    Family("apertus", ("<|tools_prefix|>", "<|inner_prefix|>"), described(lambda source: APERTUS)),
    Family("apriel", ("<tool_calls>[", "[BEGIN FINAL RESPONSE]"), described(lambda source: APRIEL)),
    Family("granite3", ("<|tool_call|>", "<|start_of_role|>"), described(lambda source: GRANITE3)),
    Family("gigachat3.1", ("<|role_sep|>", "<|function_call|>"), described(lambda source: GIGACHAT3_1)),
    Family("gigachat3", ("<|role_sep|>", "function call"), described(lambda source: GIGACHAT3)),
    Family("minicpm5", ('<function name="', '<param name="'), described(lambda source: MINICPM5)),
    Family("reka", ("<tool_call>", '"arguments', "<sep>"), described(lambda source: REKA)),
    Family("qwen-xml", ("<tool_call>", "<function=", "<parameter="), described(lambda source: qwen_xml(thinking_of(source)))),
    Family("hermes", ("<tool_call>", '"arguments"'), described(lambda source: hermes(thinking_of(source)))),
)

NAMES = (*(family.name for family in TABLE), "generic")
"""Every format there is."""


def choose_format(source: str, name: str | None = None) -> Format:
    """The format of a template's family; the generic one if none knows it. `name` chooses a family by its name instead.

    Raises `KeyError` for a name that is not in `NAMES`.
    """
    if name is not None and name != "generic":
        return next(family for family in TABLE if family.name == name).make(source) if name in NAMES else _unknown(name)
    if name is None:
        for family in TABLE:
            if family.knows(source):
                return family.make(source)
    return DescribedFormat(generic(thinking_of(source)))


def _unknown(name: str) -> Format:
    raise KeyError(name)
