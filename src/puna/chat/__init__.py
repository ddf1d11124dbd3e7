"""Chat: text in, text out. Messages and a model's template become the text of a prompt."""

from puna.chat.builtin import builtin_template
from puna.chat.messages import MarkPart, MediaPart, Message, Part, TextPart, ToolCall, content_of
from puna.chat.render import Rendered, Segment, check_kwargs, render_chat
from puna.chat.special import SpecialTexts
from puna.chat.template import ChatTemplate

__all__ = [
    "ChatTemplate",
    "MarkPart",
    "MediaPart",
    "Message",
    "Part",
    "Rendered",
    "Segment",
    "SpecialTexts",
    "TextPart",
    "ToolCall",
    "builtin_template",
    "check_kwargs",
    "content_of",
    "render_chat",
]
