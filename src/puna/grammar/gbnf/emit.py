"""A grammar whose lexemes are marked, written in the constraint engine's Lark."""

from __future__ import annotations

from puna.grammar.gbnf.lexemes import Call, Group, Lexeme, Part, Plan
from puna.grammar.gbnf.nodes import Alt, Chars, GrammarError, Node, Ref, Repeat, Rules, Seq, Token
from puna.grammar.gbnf.rules import ROOT, is_nullable, nullable_rules

MAX_RULES = 5000
"""Most rules of the result: the engine's compiler goes through them recursively."""


def emit(rules: Rules, plan: Plan) -> str:
    """Lark text for the same language."""
    return _Emitter(rules, plan).text()


class _Emitter:
    def __init__(self, rules: Rules, plan: Plan) -> None:
        self._rules = rules
        self._plan = plan
        self._empty = nullable_rules(rules)
        self._names = {name: "start" if name == ROOT else f"r{number}" for number, name in enumerate(plan)}
        self._lines: list[str] = []
        self._terminals: dict[str, str] = {}
        self._groups = 0

    def text(self) -> str:
        for name, part in self._plan.items():
            self._add(self._names[name], part)
        terminals = [f"{name}: /{pattern}/" for pattern, name in self._terminals.items()]
        return "\n".join(["%llguidance {}", *self._lines, *terminals, ""])

    def _add(self, name: str, part: Part) -> None:
        place = len(self._lines)
        self._lines.append("")
        if isinstance(part, Group) and isinstance(part.node, Alt):
            body = " | ".join(self._one(inner) for inner in part.parts)
        elif isinstance(part, Group) and isinstance(part.node, Seq):
            body = self._sequence(part)
        else:
            body = self._one(part)
        self._lines[place] = f"{name}: {body}"

    def _sequence(self, group: Group) -> str:
        return " ".join(self._one(part) for part in group.parts) or '""'

    def _one(self, part: Part) -> str:
        """A part as one symbol, with a rule of its own where it has several: the engine does not take deep nesting."""
        if isinstance(part, Call):
            return self._names[part.name]
        if isinstance(part, Token):
            return f"<[^{part.id}]>" if part.negated else f"<[{part.id}]>"
        if isinstance(part, Lexeme):
            return self._lexeme(part.node)
        if isinstance(part.node, Repeat):
            inner = part.parts[0]
            nested = isinstance(inner, Group) and isinstance(inner.node, Repeat)
            return f"({self._named(inner) if nested else self._one(inner)}){_times(part.node)}"
        return self._named(part)

    def _named(self, part: Part) -> str:
        """The name of a rule made for the part."""
        self._groups += 1
        if self._groups + len(self._plan) > MAX_RULES:
            raise GrammarError(f"the grammar has more than {MAX_RULES} rules and groups")
        name = f"g{self._groups}"
        self._add(name, part)
        return name

    def _lexeme(self, node: Node) -> str:
        pattern = self._pattern(node)
        if not pattern:
            return '""'
        name = self._terminals.setdefault(pattern, f"T{len(self._terminals)}")
        return f"({name})?" if is_nullable(node, self._empty) else name

    def _pattern(self, node: Node) -> str:
        """The node as a regular expression."""
        if isinstance(node, Chars):
            return node.chars.pattern
        if isinstance(node, Ref):
            return self._pattern(self._rules[node.name])
        if isinstance(node, Seq):
            return "".join(self._pattern(item) for item in node.items)
        if isinstance(node, Alt):
            return "(?:" + "|".join(self._pattern(option) for option in node.options) + ")"
        assert isinstance(node, Repeat)
        return f"(?:{self._pattern(node.item)}){_times(node)}"


def _times(node: Repeat) -> str:
    if node.high is None:
        return "*" if node.low == 0 else "+" if node.low == 1 else f"{{{node.low},}}"
    if (node.low, node.high) == (0, 1):
        return "?"
    return f"{{{node.low},{node.high}}}"
