"""The few chat templates that can be asked for by name, for models that bring none."""

from __future__ import annotations

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LLAMA3 = (
    "{{ bos_token }}{% for message in messages %}<|start_header_id|>{{ message.role }}<|end_header_id|>\n\n"
    "{{ message.content | trim }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
GEMMA = (
    "{{ bos_token }}{% set ns = namespace(system='') %}{% for message in messages %}"
    "{% if message.role == 'system' %}{% set ns.system = message.content | trim ~ '\n\n' %}{% else %}"
    "<start_of_turn>{{ 'model' if message.role == 'assistant' else message.role }}\n"
    "{{ ns.system }}{{ message.content | trim }}<end_of_turn>\n{% set ns.system = '' %}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
PLAIN = (
    "{% for message in messages %}{{ message.role | capitalize }}: {{ message.content | trim }}\n{% endfor %}"
    "{% if add_generation_prompt %}Assistant:{% endif %}"
)

BUILT_IN = {"chatml": CHATML, "gemma": GEMMA, "llama3": LLAMA3, "plain": PLAIN}


def is_jinja(text: str) -> bool:
    """Whether the text holds anything that Jinja would act on."""
    return "{{" in text or "{%" in text


def resolve(text: str) -> str:
    """Jinja text as it is, a name's template, or a `ValueError` that lists the names."""
    if is_jinja(text):
        return text
    name = text.strip().lower()
    if name in BUILT_IN:
        return BUILT_IN[name]
    raise ValueError(
        f"{text!r} is neither Jinja text nor a built-in template ({', '.join(BUILT_IN)}); for a file use --chat-template-file"
    )
