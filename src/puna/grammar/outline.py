"""Outlines in the constraint engine's form."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from puna.errors import InvalidRequest
from puna.grammar.charset import escape
from puna.outline import Alt, Branch, Free, Node, Outline, Part, Pattern, Repeat, Seq, Text
from puna.types import Constraint, Trigger

SPACED = {"item_separator": ", ?", "key_separator": ": ?"}

Prepare = Callable[[Constraint], Constraint]
"""How a part of an outline is prepared."""


def compile_outline(source: str, preserved: Mapping[str, int], prepare: Prepare) -> tuple[str, tuple[str, ...]]:
    """The engine's form of an outline, and what of its parts is not enforced.

    `preserved` are control tokens by their texts: where an outline has such a text, it is the token that must come. Raises
    `InvalidRequest` for a part that cannot be enforced.
    """
    compiler = _Compiler(preserved, prepare)
    outline = msgspec.json.decode(source, type=Outline)
    return compiler.compile(outline.root), tuple(compiler.warnings)


def shorten_triggers(triggers: Sequence[Trigger], preserved: Mapping[str, int]) -> tuple[Trigger, ...]:
    """The triggers, those words that begin with a control token cut down to it: it is what output can be told by."""
    shortened: list[Trigger] = []
    for trigger in triggers:
        if trigger.kind == "word":
            head = max((text for text in preserved if trigger.value.startswith(text)), key=len, default=trigger.value)
            trigger = msgspec.structs.replace(trigger, value=head)
        shortened.append(trigger)
    return tuple(shortened)


class _Compiler:
    def __init__(self, preserved: Mapping[str, int], prepare: Prepare) -> None:
        self._preserved = sorted((text for text in preserved if text), key=len, reverse=True)
        self._ids = preserved
        self._prepare = prepare
        self._rules: dict[str, str] = {}
        self._terminals: dict[str, str] = {}
        self._lazy: dict[str, str] = {}
        self._parts: dict[Part, str] = {}
        self._grammars: list[dict[str, Any]] = []
        self.warnings: list[str] = []

    def compile(self, root: Node) -> str:
        start = self._node(root)
        lines = ["%llguidance {}", f"start: {start}"]
        lines += [f"{name}: {body}" for body, name in self._rules.items()]
        lines += [f"{name}[lazy]: {body}" for body, name in self._lazy.items()]
        lines += [f"{name}: {body}" for body, name in self._terminals.items()]
        return json.dumps({"grammars": [{"lark_grammar": "\n".join([*lines, ""])}, *self._grammars]})

    def _node(self, node: Node) -> str:
        """The node as one symbol or a row of symbols."""
        if isinstance(node, Text):
            return self._text(node.text)
        if isinstance(node, Pattern):
            return self._terminal(f"/{node.regex}/")
        if isinstance(node, Free):
            return self._free(node)
        if isinstance(node, Seq):
            return " ".join(filter(None, map(self._node, node.items)))
        if isinstance(node, Alt):
            return self._rule(" | ".join(self._node(option) or '""' for option in node.options))
        if isinstance(node, Repeat):
            return f"{self._rule(self._node(node.item))}{_times(node)}"
        return self._part(node)

    def _text(self, text: str) -> str:
        return " ".join(
            f"<[{self._ids[piece]}]>" if piece in self._ids else self._terminal(f"/{escape(piece)}/")
            for piece in self._split(text)
        )

    def _split(self, text: str) -> list[str]:
        """The text in pieces that are control tokens, or have none in them."""
        pieces: list[str] = []
        plain = at = 0
        while at < len(text):
            token = next((one for one in self._preserved if text.startswith(one, at)), None)
            if token is None:
                at += 1
                continue
            if plain < at:
                pieces.append(text[plain:at])
            pieces.append(token)
            plain = at = at + len(token)
        return [*pieces, text[plain:]] if plain < len(text) else pieces

    def _free(self, node: Free) -> str:
        marks = [*(branch.mark for branch in node.branches), *node.without]
        text = (
            f"(?s:.{{{node.low},{'' if node.high is None else node.high}}})" if node.low or node.high is not None else "(?s:.*)"
        )
        options = [self._branch(branch, marks, text, node.without) for branch in node.branches]
        if node.ends:
            options.append(self._any(marks, text, node.not_first))
        if node.lost and node.lost not in self.warnings:
            self.warnings.append(node.lost)
        return self._rule(" | ".join(options))

    def _branch(self, branch: Branch, marks: Sequence[str], text: str, without: Sequence[str]) -> str:
        head, *rest = self._split(branch.mark)
        after = " ".join(filter(None, [self._text("".join(rest)), self._node(branch.then)]))
        if head in self._ids:
            return f"{self._any(marks, text)} <[{self._ids[head]}]> {after}"
        if not rest and not without:
            return f"{self._until(f'/{text}{escape(head)}/')} {after}"
        token = next((piece for piece in rest if piece in self._ids), "")
        found = "|".join(map(escape, sorted({token, *without} - {""})))
        plain = self._terminal(f"/{text}/ & ~/(?s:.*)({found})(?s:.*)/")
        head_name = self._terminal(f"/{escape(head)}/")
        until = self._until(self._terminal(f"{plain} {head_name}"))
        return f"{until}+ {after}" if rest else f"{until} {after}"  # what is before a token may come without it

    def _until(self, body: str) -> str:
        """A rule that takes as little as it can."""
        return self._lazy.setdefault(body, f"u{len(self._lazy)}")

    def _any(self, marks: Sequence[str], text: str, not_first: str = "") -> str:
        """Text without the marks; it may be empty if `text` may."""
        found = "|".join(sorted(map(escape, marks)))
        body = f"/{text}/ & ~/(?s:.*)({found})(?s:.*)/" if marks else f"/{text}/"
        if not_first and not_first not in self._ids:
            body += f" & ~/{escape(not_first)}(?s:.*)/"
        name = self._terminal(f"({body}) & /(?s:.+)/")
        return f"{name}?" if "*" in text or "{0," in text else name

    def _part(self, part: Part) -> str:
        name = self._parts.get(part)
        if name is None:
            name = self._parts[part] = f"p{len(self._parts)}"
            self._add(part, name)
        return f"@{name}"

    def _add(self, part: Part, name: str) -> None:
        try:
            prepared = self._prepare(part.constraint)
        except InvalidRequest as error:
            message = f"{part.label}: {error.message}" if part.label else error.message
            raise InvalidRequest(message, param=part.param or error.param) from error
        self.warnings += [f"{part.label}: {warning}" if part.label else warning for warning in prepared.warnings]
        first, *others = _grammars(prepared.compiled)
        schema = first.get("json_schema")
        if part.spaced and isinstance(schema, dict):
            first["json_schema"] = {**schema, "x-guidance": {**schema.get("x-guidance", {}), **SPACED}}
        self._grammars += [{**first, "name": name}, *others]

    def _terminal(self, body: str) -> str:
        return self._terminals.setdefault(body, f"T{len(self._terminals)}")

    def _rule(self, body: str) -> str:
        return self._rules.setdefault(body or '""', f"r{len(self._rules)}")


def _grammars(compiled: str) -> list[dict[str, Any]]:
    """The grammars in the engine's form, which is JSON, or Lark as it is."""
    if not compiled.startswith('{"grammars"'):
        return [{"lark_grammar": compiled}]
    found: list[dict[str, Any]] = json.loads(compiled)["grammars"]
    return found


def _times(node: Repeat) -> str:
    if (node.low, node.high) == (0, 1):
        return "?"
    if node.high is None and node.low <= 1:
        return "+" if node.low else "*"
    return f"{{{node.low},{'' if node.high is None else node.high}}}"
