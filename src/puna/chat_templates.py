"""Chat templates that can be asked for by name, for models that bring none or a bad one. The names are llama.cpp's.

None of them knows tools or reasoning; chats bridge that.
"""

from __future__ import annotations


def _turns(turn: str, prompt: str = "", before: str = "") -> str:
    opened = f"{{% if add_generation_prompt %}}{prompt}{{% endif %}}" if prompt else ""
    return f"{before}{{% for message in messages %}}{turn}{{% endfor %}}{opened}"


def _roles(system: str, user: str, assistant: str) -> str:
    first = f"{{% if message.role == 'system' %}}{system}{{% elif message.role == 'user' %}}{user}"
    return f"{first}{{% else %}}{assistant}{{% endif %}}"


def _inst(lead: str, gap: str, reply: str) -> str:
    """Mistral's first formats: the system text stands in the brackets of the first question."""
    opening = f"{{% if not ns.open %}}{lead}[INST]{gap}{{% set ns.open = true %}}{{% endif %}}"
    asked = f"{TEXT}{lead}[/INST]"
    answered = f"{gap}{reply}</s>{{% set ns.open = false %}}"
    return _turns(opening + _roles(TEXT + "\n\n", asked, answered), before="{% set ns = namespace(open=false) %}")


def _llama2(system: str, again: str = "[INST] ", text: str = "{{ message.content }}") -> str:
    opening = f"{{% if not ns.open %}}{again}{{% set ns.open = true %}}{{% endif %}}"
    answered = f"{text}</s>{{% set ns.open = false %}}"
    return _turns(opening + _roles(system, f"{text} [/INST]", answered), before="{% set ns = namespace(open=true) %}[INST] ")


def _folded(user: str, assistant: str, prompt: str = "", text: str = "{{ message.content }}") -> str:
    """For models without a system role: the system text stands before the first question."""
    keep = f"{{% set ns.system = ns.system ~ ({text[2:-2]}) %}}"
    said = "{% if ns.system %}{{ ns.system }}\n\n{% set ns.system = '' %}{% endif %}" + text
    return _turns(_roles(keep, user.replace("TEXT", said), assistant), prompt, "{% set ns = namespace(system='') %}")


ROLE = "{{ message.role }}"
TEXT = "{{ message.content }}"
TRIMMED = "{{ message.content | trim }}"
_SYS = "<<SYS>>\n{}\n<</SYS>>\n\n"
_COHERE = "<|START_OF_TURN_TOKEN|><|{}_TOKEN|>"

BUILT_IN: dict[str, str] = {
    "chatml": _turns(f"<|im_start|>{ROLE}\n{TEXT}<|im_end|>\n", "<|im_start|>assistant\n"),
    "chatglm3": _turns(f"<|{ROLE}|>\n {TEXT}", "<|assistant|>", "[gMASK]sop"),
    "chatglm4": _turns(f"<|{ROLE}|>\n{TEXT}", "<|assistant|>\n", "[gMASK]<sop>"),
    "command-r": _turns(
        _roles(*(f"{_COHERE.format(role)}{TRIMMED}<|END_OF_TURN_TOKEN|>" for role in ("SYSTEM", "USER", "CHATBOT"))),
        _COHERE.format("CHATBOT"),
    ),
    "deepseek": _turns(
        _roles(TEXT, f"### Instruction:\n{TEXT}\n", f"### Response:\n{TEXT}\n<|EOT|>\n"), "### Response:\n"
    ),
    "deepseek2": _turns(
        _roles(f"{TEXT}\n\n", f"User: {TEXT}\n\n", f"Assistant: {TEXT}<｜end▁of▁sentence｜>"), "Assistant:"
    ),
    "deepseek3": _turns(
        _roles(f"{TEXT}\n\n", f"<｜User｜>{TEXT}", f"<｜Assistant｜>{TEXT}<｜end▁of▁sentence｜>"), "<｜Assistant｜>"
    ),
    "exaone3": _turns(
        _roles(
            f"[|system|]{TRIMMED}[|endofturn|]\n", f"[|user|]{TRIMMED}\n", f"[|assistant|]{TRIMMED}[|endofturn|]\n"
        ),
        "[|assistant|]",
    ),
    "falcon3": _turns(f"<|{ROLE}|>\n{TEXT}\n", "<|assistant|>\n"),
    "gemma": _folded(
        "<start_of_turn>user\nTEXT<end_of_turn>\n",
        f"<start_of_turn>model\n{TRIMMED}<end_of_turn>\n",
        "<start_of_turn>model\n",
        TRIMMED,
    ),
    "granite": _turns(
        f"<|start_of_role|>{ROLE}<|end_of_role|>{TEXT}<|end_of_text|>\n", "<|start_of_role|>assistant<|end_of_role|>"
    ),
    "llama2": _llama2(f"{TEXT}\n"),
    "llama2-sys": _llama2(_SYS.format(TEXT)),
    "llama2-sys-bos": _llama2(_SYS.format(TEXT), "<s>[INST] "),
    "llama2-sys-strip": _llama2(_SYS.format(TRIMMED), text=TRIMMED),
    "llama3": _turns(
        f"<|start_header_id|>{ROLE}<|end_header_id|>\n\n{TRIMMED}<|eot_id|>",
        "<|start_header_id|>assistant<|end_header_id|>\n\n",
    ),
    "minicpm": _turns(_roles(TRIMMED, f"<用户>{TRIMMED}<AI>", TRIMMED)),
    "mistral-v1": _inst(" ", " ", TEXT),
    "mistral-v3": _inst("", " ", TRIMMED),
    "mistral-v3-tekken": _inst("", "", TEXT),
    "mistral-v7": _turns(_roles(f"[SYSTEM_PROMPT] {TEXT}[/SYSTEM_PROMPT]", f"[INST] {TEXT}[/INST]", f" {TEXT}</s>")),
    "mistral-v7-tekken": _turns(_roles(f"[SYSTEM_PROMPT]{TEXT}[/SYSTEM_PROMPT]", f"[INST]{TEXT}[/INST]", f"{TEXT}</s>")),
    "monarch": _turns(
        "{% if not loop.first %}<s>{% endif %}" + f"{ROLE}\n{TEXT}</s>\n", "<s>assistant\n"
    ),
    "openchat": _turns(
        _roles(TEXT, f"GPT4 Correct User: {TEXT}", f"GPT4 Correct Assistant: {TEXT}") + "<|end_of_turn|>",
        "GPT4 Correct Assistant:",
    ),
    "orion": _folded("Human: TEXT\n\nAssistant: </s>", f"{TEXT}</s>"),
    "phi3": _turns(f"<|{ROLE}|>\n{TEXT}<|end|>\n", "<|assistant|>\n"),
    "phi4": _turns(f"<|im_start|>{ROLE}<|im_sep|>{TEXT}<|im_end|>", "<|im_start|>assistant<|im_sep|>"),
    "plain": _turns("{{ message.role | capitalize }}: " + f"{TRIMMED}\n", "Assistant:"),
    "rwkv-world": _turns(
        _roles(f"System: {TRIMMED}\n\n", f"User: {TRIMMED}\n\n", f"Assistant: {TRIMMED}\n\n"), "Assistant:"
    ),
    "vicuna": _turns(_roles(f"{TEXT}\n\n", f"USER: {TEXT}\n", f"ASSISTANT: {TEXT}</s>\n"), "ASSISTANT:"),
    "vicuna-orca": _turns(_roles(f"SYSTEM: {TEXT}\n", f"USER: {TEXT}\n", f"ASSISTANT: {TEXT}</s>\n"), "ASSISTANT:"),
    "zephyr": _turns(f"<|{ROLE}|>\n{TEXT}<|endoftext|>\n", "<|assistant|>\n"),
}  # fmt: skip
"""Jinja source by name."""
