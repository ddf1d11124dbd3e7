"""Options that are about the chat template."""

from __future__ import annotations

from puna.settings.option import Option
from puna.settings.table import MODEL
from puna.settings.values import JsonObject, Switch, Text

CHAT_OPTIONS = (
    Option(
        flags=("--chat-template",),
        kind=Text("JINJA"),
        target="load.chat_template",
        variables=("LLAMA_ARG_CHAT_TEMPLATE",),
        group=MODEL,
        help="Jinja text, or the name of a built-in template, instead of the model's own",
    ),
    Option(
        flags=("--chat-template-file",),
        kind=Text("FILE"),
        target="load.chat_template",
        variables=("LLAMA_ARG_CHAT_TEMPLATE_FILE",),
        group=MODEL,
        help="the same, from a file",
    ),
    Option(
        flags=("--chat-template-kwargs",),
        kind=JsonObject(),
        target="load.chat_template_kwargs",
        variables=("LLAMA_ARG_CHAT_TEMPLATE_KWARGS", "LLAMA_CHAT_TEMPLATE_KWARGS"),
        group=MODEL,
        help="variables of the template, for requests that do not set them",
    ),
    Option(
        flags=("--request-templates",),
        off_flags=("--no-request-templates",),
        kind=Switch(),
        target="server.request_templates",
        group=MODEL,
        help="let requests bring Jinja templates of their own; names of built-in ones they may always use",
    ),
    Option(
        flags=("--prefill-assistant",),
        off_flags=("--no-prefill-assistant",),
        kind=Switch(),
        target="server.prefill_assistant",
        variables=("LLAMA_ARG_PREFILL_ASSISTANT",),
        group=MODEL,
        help="continue a last message of the assistant, for requests that do not say",
    ),
)
