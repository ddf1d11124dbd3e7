"""What `--chat-template` says: Jinja text, or the name of a template."""

from __future__ import annotations

from puna.chat_templates import BUILT_IN


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
