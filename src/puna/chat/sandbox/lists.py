"""Lists that a template means to change, in a sandbox where nothing changes.

Some templates, Kimi's among them, keep a queue in a namespace: `{% set _ = ns.queue.append(x) %}` and
`{% set x = ns.queue.pop(0) %}`. Python's sandbox refuses both; other engines run them. Rewritten as assignments of new
lists they do the same, and no list that was once weighed is ever another one.
"""

from __future__ import annotations

from jinja2 import nodes


def without_change(node: nodes.Assign) -> list[nodes.Node]:
    """The statements that do the same as `node`: itself, or assignments instead of `append` and `pop`."""
    call = node.node
    if not isinstance(call, nodes.Call) or call.kwargs or call.dyn_args or call.dyn_kwargs:
        return [node]
    method = call.node
    if not isinstance(method, nodes.Getattr) or not isinstance(method.node, nodes.Getattr):
        return [node]
    owner = method.node
    if not isinstance(owner.node, nodes.Name):
        return [node]
    line = node.lineno
    place = nodes.NSRef(owner.node.name, owner.attr, lineno=line)
    if method.attr == "append" and len(call.args) == 1:
        longer = nodes.Add(owner, nodes.List(call.args, lineno=line), lineno=line)
        return [nodes.Assign(place, longer, lineno=line), nodes.Assign(node.target, nodes.Const(None), lineno=line)]
    index = _constant(call.args)
    if method.attr == "pop" and index in (0, -1):
        first, rest = (None, nodes.Const(-1)) if index else (nodes.Const(1), None)
        shorter = nodes.Getitem(owner, nodes.Slice(first, rest, None, lineno=line), "load", lineno=line)
        taken = nodes.Getitem(owner, nodes.Const(index), "load", lineno=line)
        return [nodes.Assign(node.target, taken, lineno=line), nodes.Assign(place, shorter, lineno=line)]
    return [node]


def _constant(arguments: list[nodes.Expr]) -> object:
    """The one argument's value; -1, what `pop` takes without, for none."""
    if not arguments:
        return -1
    only = arguments[0]
    if isinstance(only, nodes.Neg) and isinstance(only.node, nodes.Const):
        return -only.node.value if isinstance(only.node.value, int) else None
    return only.value if len(arguments) == 1 and isinstance(only, nodes.Const) else None
