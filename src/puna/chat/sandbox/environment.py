"""The Jinja environment of chat templates, as Hugging Face's `transformers` sets it up, made safe to run.

The compiled template is watched by rewriting its syntax tree (`instrument`): loops and macros count their steps, the
concatenations, slices and literals that Jinja compiles to bare Python pay for what they make. Everything else that a
template can do passes through a method of the environment already. Compared with tracing the interpreter this costs
little, and it works on every thread.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from datetime import datetime
from typing import Any

from jinja2 import nodes
from jinja2.exceptions import SecurityError, TemplateError, TemplateSyntaxError
from jinja2.ext import Extension, LoopControlExtension
from jinja2.parser import Parser
from jinja2.runtime import BlockReference, Context, LoopContext, Macro, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment, safe_range
from jinja2.utils import Cycler, Joiner, Namespace, pass_context
from jinja2.visitor import NodeTransformer

from puna.chat.sandbox import filters
from puna.chat.sandbox.budget import MAX_INT, TemplateLimit, active
from puna.chat.sandbox.lists import without_change
from puna.chat.sandbox.operators import FormatMethod, binary, call_method

_SMALL_LITERAL = 32
_MAX_DATE_FORMAT = 200


class TemplateRefusal(TemplateError):
    """The template itself refused the conversation, in its own words."""


class ChatEnvironment(ImmutableSandboxedEnvironment):
    """A sandbox in which every operation is paid for from the active `Budget`."""

    intercepted_binops = frozenset(["+", "-", "*", "/", "//", "%", "**"])

    def __init__(self, now: Callable[[], datetime] = datetime.now) -> None:
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, extensions=[GenerationExtension, LoopControlExtension], finalize=_finalize
        )

        def strftime_now(format: str) -> str:
            if len(format) > _MAX_DATE_FORMAT:
                raise TemplateLimit("the chat template uses too wide a format")
            return now().strftime(format)

        self.filters = filters.guarded_filters()
        self.globals = {
            "cycler": Cycler,
            "dict": _make_dict,
            "joiner": Joiner,
            "namespace": _Namespace,
            "raise_exception": _raise_exception,
            "range": safe_range,
            "strftime_now": strftime_now,
        }
        self._functions = tuple(self.globals.values())

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Call what a template may call: its macros, loops and blocks, the globals, and the plain methods of plain values."""
        budget = active()
        budget.tick()
        if isinstance(__obj, types.BuiltinMethodType):
            return call_method(__obj, args, kwargs)
        owner = getattr(__obj, "__self__", None)
        if (
            isinstance(__obj, (Macro, LoopContext, BlockReference, Undefined, Joiner, FormatMethod))
            or isinstance(owner, (LoopContext, Cycler, GenerationExtension))
            or any(__obj is function for function in __self._functions)
        ):
            return budget.admit(__context.call(__obj, *args, **kwargs))
        raise SecurityError(f"a {type(__obj).__name__!r} object may not be called")

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Run a binary operator."""
        return binary(operator, self.binop_table[operator], left, right)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Replace `str.format` and `str.format_map` by paid ones."""
        if isinstance(value, (types.MethodType, types.BuiltinMethodType)) and value.__name__ in ("format", "format_map"):
            owner = value.__self__
            if isinstance(owner, str):
                return FormatMethod(self, owner, value.__name__ == "format_map")
        return None


class GenerationExtension(Extension):
    """`{% generation %}` marks the assistant's text for training; here the mark has no effect but a scope of its own."""

    tags = {"generation"}  # noqa: RUF012 - as the base class declares it

    def parse(self, parser: Parser) -> nodes.Node:
        """Parse one block."""
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("keep"), [], [], body).set_lineno(lineno)

    def keep(self, caller: Macro) -> str:
        """Return the block's text."""
        return str(caller())


class _Namespace(Namespace):
    """A namespace that gives no way to Python's internals, and whose text is short even if it holds itself."""

    # The odd signature lets a template have an attribute called `self`.
    def __init__(*args: Any, **kwargs: Any) -> None:
        attributes = dict(*args[1:], **kwargs)
        for name in attributes:
            _check_name(name)
        Namespace.__init__(args[0], attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        super().__setitem__(name, value)

    def __repr__(self) -> str:
        return "<Namespace>"


def _check_name(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"a namespace may not have an attribute called {name!r}")


def _make_dict(*args: Any, **kwargs: Any) -> dict[Any, Any]:
    # Pairs come one at a time so that the clock is looked at between them.
    if len(args) == 1 and not isinstance(args[0], dict):
        return dict(active().drip(args[0]), **kwargs)
    return dict(*args, **kwargs)


def _raise_exception(message: object) -> None:
    raise TemplateRefusal(active().text(message))


@pass_context
def _finalize(_context: Context, value: Any) -> str:
    # With a context it runs when the template does, never on constants while Jinja compiles.
    budget = active()
    budget.tick()
    return budget.text(value)


def instrument(tree: nodes.Template, environment: ChatEnvironment) -> nodes.Template:
    """Rewrite a parsed template so that what Jinja compiles to bare Python is counted. Changes nothing in its output."""
    watched: nodes.Template = _Watch().visit(tree)
    watched.set_environment(environment)
    return watched


class _Watch(NodeTransformer):
    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        node.iter = _through(filters.ITERATE, node.iter)
        node.body.insert(0, _step(node, node.body))
        return node

    def _visit_body(self, node: nodes.Macro | nodes.CallBlock | nodes.Block) -> nodes.Node:
        self.generic_visit(node)
        node.body.insert(0, _step(node, node.body))
        return node

    visit_Macro = visit_CallBlock = visit_Block = _visit_body

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _through(filters.CONCAT, nodes.List(node.nodes, lineno=node.lineno))

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        self.generic_visit(node)
        return _through(filters.CUT, node) if isinstance(node.arg, nodes.Slice) else node

    def _visit_literal(self, node: nodes.List | nodes.Tuple | nodes.Dict) -> nodes.Node:
        self.generic_visit(node)
        if isinstance(node, nodes.Tuple) and node.ctx != "load":
            return node
        items: list[Any] = list(node.items)
        if len(items) <= _SMALL_LITERAL and all(isinstance(item, nodes.Const) for item in items):
            return node
        return _through(filters.WEIGH, node)

    visit_List = visit_Tuple = visit_Dict = _visit_literal

    def visit_Assign(self, node: nodes.Assign) -> list[nodes.Node]:
        return [self.generic_visit(statement) for statement in without_change(node)]

    def visit_Const(self, node: nodes.Const) -> nodes.Node:
        if isinstance(node.value, int) and node.value >= MAX_INT:
            raise TemplateSyntaxError("a number is too large", node.lineno)
        return node

    def _refuse(self, node: nodes.Node) -> nodes.Node:
        raise TemplateSyntaxError("a chat template may not load templates or change how text is escaped", node.lineno)

    visit_Extends = visit_Include = visit_Import = visit_FromImport = _refuse
    visit_EvalContextModifier = visit_ScopedEvalContextModifier = _refuse


def _through(name: str, node: nodes.Node) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


def _step(owner: nodes.Node, body: list[nodes.Node]) -> nodes.ExprStmt:
    # Text of the template itself is written without a call: each pass through a body pays for all that it may write.
    n_bytes = sum(4 * len(data.data) for statement in body for data in _template_data(statement))
    cost = nodes.Const(n_bytes, lineno=owner.lineno)
    return nodes.ExprStmt(_through(filters.TICK, cost), lineno=owner.lineno)


def _template_data(node: nodes.Node) -> list[nodes.TemplateData]:
    found = list(node.find_all(nodes.TemplateData))
    return [node, *found] if isinstance(node, nodes.TemplateData) else found
