"""Running a Jinja template that nobody has checked: no way out, bounded time and bounded memory."""

from puna.chat.sandbox.budget import Budget, TemplateLimit
from puna.chat.sandbox.environment import ChatEnvironment, TemplateRefusal

__all__ = ["Budget", "ChatEnvironment", "TemplateLimit", "TemplateRefusal"]
