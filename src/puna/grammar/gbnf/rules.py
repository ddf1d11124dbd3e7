"""Whether rules make a grammar that can be followed, and two changes that keep their language: tail recursion becomes
repetition, and what cannot be reached is dropped."""

from __future__ import annotations

from collections.abc import Iterator

from puna.grammar.gbnf.nodes import Alt, GrammarError, Node, Ref, Repeat, Rules, Seq, children, sequence

ROOT = "root"


def check_rules(rules: Rules) -> None:
    """Raise `GrammarError` for a grammar that has no beginning, refers to nothing, or could go round in circles."""
    if ROOT not in rules:
        raise GrammarError("there is no rule called 'root', with which every grammar begins")
    for name, node in rules.items():
        for ref in refs(node):
            if ref.name not in rules:
                raise GrammarError(f"line {ref.line}: rule '{ref.name[:50]}' is not defined (in rule '{name[:50]}')")
    empty = nullable_rules(rules)
    for name, node in rules.items():
        _check_loops(name, node, empty)
    _check_left_recursion(rules, empty)
    _check_ends(rules)


def refs(node: Node) -> Iterator[Ref]:
    """Every reference in a node."""
    if isinstance(node, Ref):
        yield node
    for child in children(node):
        yield from refs(child)


def nullable_rules(rules: Rules) -> set[str]:
    """The rules that match the empty text."""
    empty: set[str] = set()
    grown = True
    while grown:
        before = len(empty)
        empty.update(name for name, node in rules.items() if is_nullable(node, empty))
        grown = len(empty) > before
    return empty


def is_nullable(node: Node, empty: set[str]) -> bool:
    """Whether a node matches the empty text, given the rules that do."""
    if isinstance(node, Ref):
        return node.name in empty
    if isinstance(node, Seq):
        return all(is_nullable(item, empty) for item in node.items)
    if isinstance(node, Alt):
        return any(is_nullable(option, empty) for option in node.options)
    if isinstance(node, Repeat):
        return node.low == 0 or is_nullable(node.item, empty)
    return False


def _check_loops(name: str, node: Node, empty: set[str]) -> None:
    if isinstance(node, Repeat) and node.high is None and is_nullable(node.item, empty):
        raise GrammarError(f"line {node.line}: something that may be empty is repeated without end (in rule '{name[:50]}')")
    for child in children(node):
        _check_loops(name, child, empty)


def _check_left_recursion(rules: Rules, empty: set[str]) -> None:
    """A rule must not come back to itself before it has matched a character."""
    edges = {name: list(dict.fromkeys(_leftmost(node, empty))) for name, node in rules.items()}
    done: set[str] = set()
    for start in rules:
        if start in done:
            continue
        path, on_path = [(start, iter(edges[start]))], {start}
        while path:
            name, following = path[-1]
            step = next(following, None)
            if step is None:
                path.pop()
                on_path.discard(name)
                done.add(name)
            elif step in on_path:
                raise GrammarError(f"rule '{step[:50]}' is left-recursive: it begins with itself")
            elif step not in done:
                path.append((step, iter(edges[step])))
                on_path.add(step)


def _leftmost(node: Node, empty: set[str]) -> Iterator[str]:
    """The rules that a node may begin with."""
    if isinstance(node, Ref):
        yield node.name
    elif isinstance(node, Seq):
        for item in node.items:
            yield from _leftmost(item, empty)
            if not is_nullable(item, empty):
                return
    else:
        for child in children(node):
            yield from _leftmost(child, empty)


def _check_ends(rules: Rules) -> None:
    """Every rule that can be reached must be able to come to an end."""
    ending: set[str] = set()
    grown = True
    while grown:
        before = len(ending)
        ending.update(name for name, node in rules.items() if _can_end(node, ending))
        grown = len(ending) > before
    for name in reachable(rules):
        if name not in ending:
            raise GrammarError(f"rule '{name[:50]}' can never come to an end")


def _can_end(node: Node, ending: set[str]) -> bool:
    if isinstance(node, Ref):
        return node.name in ending
    if isinstance(node, Alt):
        return any(_can_end(option, ending) for option in node.options)
    if isinstance(node, Repeat):
        return node.low == 0 or _can_end(node.item, ending)
    return all(_can_end(child, ending) for child in children(node))


def reachable(rules: Rules) -> list[str]:
    """The rules that are needed, `root` first."""
    found = {ROOT: None}
    queue = [ROOT]
    while queue:
        for ref in refs(rules[queue.pop()]):
            if ref.name not in found:
                found[ref.name] = None
                queue.append(ref.name)
    return list(found)


def inner_first(rules: Rules) -> list[str]:
    """All rules, each one after those that it refers to, where rules do not contain each other."""
    order: list[str] = []
    seen: set[str] = set()
    for start in rules:
        path = [] if start in seen else [(start, refs(rules[start]))]
        seen.add(start)
        while path:
            name, following = path[-1]
            step = next((ref.name for ref in following if ref.name not in seen), None)
            if step is None:
                order.append(name)
                path.pop()
            else:
                seen.add(step)
                path.append((step, refs(rules[step])))
    return order


def simplify(rules: Rules) -> Rules:
    """The same language from the rules that are needed, without tail recursion, which is costly to follow."""
    return {name: _unroll(name, rules[name]) for name in reachable(rules)}


def _unroll(name: str, node: Node) -> Node:
    """`r ::= a r | b` as `r ::= a* b`."""
    again: list[Node] = []
    ends: list[Node] = []
    for head, recurs in _tails(name, node):
        (again if recurs else ends).append(sequence(head))
    if not again or not ends:
        return node
    loop = Repeat(_choice(again), 0, None)
    end = _choice(ends)
    return loop if isinstance(end, Seq) and not end.items else Seq([loop, end])


def _choice(options: list[Node]) -> Node:
    return options[0] if len(options) == 1 else Alt(options)


def _tails(name: str, node: Node) -> list[tuple[list[Node], bool]]:
    """Alternatives of a node: what comes first, and whether the rule itself follows."""
    if isinstance(node, Ref) and node.name == name:
        return [([], True)]
    if not any(ref.name == name for ref in refs(node)):
        return [([node], False)]
    if isinstance(node, Alt):
        return [tail for option in node.options for tail in _tails(name, option)]
    if isinstance(node, Seq):
        *head, last = node.items
        return [(head + rest, recurs) for rest, recurs in _tails(name, last)]
    if isinstance(node, Repeat) and (node.low, node.high) == (0, 1):
        return [*_tails(name, node.item), ([], False)]
    return [([node], False)]
