"""Chat: text in, text out. Messages and a model's template become the text of a prompt."""

from puna.chat.builtin import builtin_template
from puna.chat.messages import Message, TextPart, ToolCall
from puna.chat.render import Rendered, Segment, check_kwargs, render_chat
from puna.chat.special import SpecialTexts
from puna.chat.template import ChatTemplate

__all__ = [
    "ChatTemplate",
    "Message",
    "Rendered",
    "Segment",
    "SpecialTexts",
    "TextPart",
    "ToolCall",
    "builtin_template",
    "check_kwargs",
    "render_chat",
]
