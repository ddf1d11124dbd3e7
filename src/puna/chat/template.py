"""A model's chat template: compiled once, rendered in a sandbox."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from jinja2 import nodes
from jinja2.meta import find_undeclared_variables

from puna.chat.capabilities import Capabilities
from puna.chat.sandbox.budget import SECONDS, Budget, TemplateLimit, activate, deactivate
from puna.chat.sandbox.environment import ChatEnvironment, TemplateRefusal, instrument
from puna.errors import InvalidRequest

MAX_SOURCE = 1 << 18
"""Most characters of a template; the longest real ones have some 20,000."""
MAX_MESSAGE = 280
"""Most characters of an error that comes from a template."""

_INSPECTING_METHODS = frozenset([
    "count", "endswith", "find", "index", "partition", "removeprefix", "removesuffix", "replace", "rfind", "rpartition",
    "rsplit", "split", "startswith",
])  # fmt: skip


class ChatTemplate:
    """A Jinja chat template with its special tokens' texts."""

    def __init__(
        self, source: str, *, bos_token: str, eos_token: str, now: Callable[[], datetime] = datetime.now, seconds: float = SECONDS
    ) -> None:
        """Compile `source`. Raises `InvalidRequest` that says what is wrong with it, and on which line.

        `now` is the clock that templates read the date from; `seconds` of processor time is what one render may take.
        """
        self._now = now
        self._seconds = seconds
        self.source = source
        self.bos_token = bos_token
        self.eos_token = eos_token
        if len(source) > MAX_SOURCE:
            raise InvalidRequest(f"the chat template is longer than {MAX_SOURCE} characters", param="chat_template")
        environment = ChatEnvironment(now)
        try:
            self._tree = instrument(environment.parse(source), environment)
            self._template = environment.from_string(self._tree)
        except RecursionError as error:
            raise InvalidRequest("the chat template nests too deeply", param="chat_template") from error
        except Exception as error:  # the parser and Python's compiler have many ways to fail
            line = getattr(error, "lineno", None)
            where = "" if line is None else f" (line {line})"
            raise InvalidRequest(
                _short(f"the chat template does not compile: {_first_line(error)}", len(where)) + where, param="chat_template"
            ) from error

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        **kwargs: Any,
    ) -> str:
        """The text of a conversation of JSON-like messages. Raises `InvalidRequest` with the template's own words when it
        refuses them, and with a short reason when it fails or costs too much."""
        variables = {
            **self._by_convention(tools),
            # `transformers` defines these even when there are none, and templates test for that.
            "tools": tools,
            "documents": None,
            "bos_token": self.bos_token,
            "eos_token": self.eos_token,
            **kwargs,
            "messages": messages,
            "add_generation_prompt": add_generation_prompt,
        }
        try:
            budget = Budget(variables, seconds=self._seconds)
            token = activate(budget)
            try:
                return "".join(budget.emit(piece) for piece in self._template.generate(variables))
            finally:
                deactivate(token)
        except TemplateRefusal as refusal:
            raise InvalidRequest(_short(str(refusal)), param="messages") from refusal
        except TemplateLimit as limit:
            raise InvalidRequest(_short(str(limit)), param="messages") from limit
        except RecursionError as error:
            raise InvalidRequest("the chat template or its input nests too deeply", param="messages") from error
        except Exception as error:  # a template is a program: any Python error can come out of it
            reason = f"the chat template failed on these messages: {_first_line(error)}"
            raise InvalidRequest(_short(reason), param="messages") from error

    def _by_convention(self, tools: Sequence[Mapping[str, Any]] | None) -> dict[str, str]:
        # FireFunction reads its tools and the date from variables of its own, and fails without them.
        found = {}
        if "functions" in self._conventional:
            found["functions"] = json.dumps(tools or [], indent=4, ensure_ascii=False)
        if "datetime" in self._conventional:
            found["datetime"] = self._now().strftime("%Y-%m-%d %H:%M:%S")
        return found

    @cached_property
    def variables(self) -> frozenset[str]:
        """Names that the template reads, be they its own or given."""
        return frozenset(name.name for name in self._tree.find_all(nodes.Name) if name.ctx == "load")

    @cached_property
    def _conventional(self) -> frozenset[str]:
        # Finding out what is given takes as long as compiling; nearly all templates have neither name.
        named = self.variables & {"functions", "datetime"}
        return named & find_undeclared_variables(self._tree) if named else named

    @cached_property
    def capabilities(self) -> Capabilities:
        """What this template can take."""
        return Capabilities(self)

    @cached_property
    def constants(self) -> frozenset[str]:
        """All string constants of the template's expressions."""
        return frozenset(node.value for node in self._tree.find_all(nodes.Const) if isinstance(node.value, str))

    @cached_property
    def inspected(self) -> frozenset[str]:
        """The strings that the template looks for in other strings, such as `</think>`."""
        found: set[str] = set()
        for call in self._tree.find_all(nodes.Call):
            if isinstance(call.node, nodes.Getattr) and call.node.attr in _INSPECTING_METHODS:
                found.update(_strings(call.args))
        for comparison in self._tree.find_all(nodes.Compare):
            if any(operand.op in ("in", "notin") for operand in comparison.ops):
                found.update(_strings([comparison.expr]))
        return frozenset(found)


def _strings(expressions: Sequence[nodes.Node]) -> list[str]:
    return [node.value for node in expressions if isinstance(node, nodes.Const) and isinstance(node.value, str)]


def _first_line(error: Exception) -> str:
    # Jinja's syntax errors carry the template's text in str(); their message alone does not.
    text = str(getattr(error, "message", None) or error).strip() or type(error).__name__
    return text.splitlines()[0]


def _short(text: str, reserve: int = 0) -> str:
    limit = MAX_MESSAGE - reserve
    return text if len(text) <= limit else text[: limit - 1] + "…"
