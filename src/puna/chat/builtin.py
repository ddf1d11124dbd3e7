"""Chat templates that puna brings along, for models that have none of their own."""

from __future__ import annotations

from puna.errors import InvalidRequest

CHATML = """\
{%- for message in messages -%}
    {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{- '<|im_start|>assistant\\n' -}}
{%- endif -%}
"""
"""The format most models without a template were trained on, or cope with."""

TEMPLATES = {"chatml": CHATML}
"""Jinja source by the name it has on the command line."""


def builtin_template(name: str) -> str:
    """The source of the template called `name`. Raises `InvalidRequest` that lists the names there are."""
    source = TEMPLATES.get(name)
    if source is None:
        known = ", ".join(sorted(TEMPLATES))
        raise InvalidRequest(f"there is no built-in chat template called {name[:40]!r}; known: {known}", param="chat_template")
    return source
