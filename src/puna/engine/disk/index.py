"""Which stored prompts there are on disk, and which of them serves a prompt best. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from puna.engine.prefix import Node, PrefixTree, token_array


@dataclass(frozen=True, slots=True)
class Record:
    """One stored prompt."""

    name: str
    """Its file's name, which says what is in it: equal names, equal contents."""
    key: bytes
    """The namespace it belongs to."""
    n_bytes: int
    """Of its file."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A file as a folder shows it."""

    name: str
    n_bytes: int
    used: float
    """When it was last used, in seconds."""


@dataclass(slots=True, eq=False)
class End:
    """What ends with a node's range."""

    record: Record | None = None


class DiskIndex:
    """Records by what they hold. `can_cut` says whether a state serves prompts that share only its beginning."""

    def __init__(self, *, can_cut: bool) -> None:
        self._can_cut = can_cut
        self._trees: dict[bytes, PrefixTree[End]] = {}
        self._nodes: dict[str, Node[End]] = {}
        self.n_bytes = 0
        """Of all files."""

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, name: str) -> bool:
        return name in self._nodes

    def tokens(self, record: Record) -> tuple[int, ...]:
        """What a record holds, as long as it is in here."""
        return self._nodes[record.name].tokens()

    def add(self, record: Record, tokens: Sequence[int]) -> list[Record]:
        """Take a record in; those that it makes redundant, which are forgotten."""
        tree = self._trees.setdefault(record.key, PrefixTree(End, lambda end, _: (End(), end)))
        node = tree.put(token_array(tokens))
        redundant = [node] if node.value.record is not None else []
        if self._can_cut:
            redundant += [step for step in node.path()[:-1] if step.value.record is not None]
        gone = [step.value.record for step in redundant if step.value.record is not None]
        for old in gone:
            del self._nodes[old.name]
            self.n_bytes -= old.n_bytes
        for step in redundant:
            step.value.record = None
        node.value.record = record
        self._nodes[record.name] = node
        self.n_bytes += record.n_bytes
        return [old for old in gone if old.name != record.name]

    def remove(self, name: str) -> None:
        """Forget a record; nothing happens if there is none of that name."""
        node = self._nodes.pop(name, None)
        if node is None or node.value.record is None:
            return
        key = node.value.record.key
        self.n_bytes -= node.value.record.n_bytes
        node.value.record = None
        tree = self._trees[key]
        useless: Node[End] | None = node
        while useless is not None and not useless.children and useless.value.record is None:
            useless = tree.remove(useless)
        if tree.empty:
            del self._trees[key]

    def find(self, tokens: Sequence[int], key: bytes) -> tuple[Record, int] | None:
        """The record that spares the most reading of `tokens`, and how many of them it spares."""
        tree = self._trees.get(key)
        if tree is None:
            return None
        node, matched = tree.walk(token_array(tokens))
        if not self._can_cut:
            whole = [(step.value.record, step.end) for step in node.path() if step.end <= matched and step.value.record]
            return whole[-1] if whole else None
        if matched == 0:
            return None
        while node.value.record is None:
            node = next(iter(node.children.values()))
        return node.value.record, matched

    def covers(self, tokens: Sequence[int], key: bytes) -> Record | None:
        """A record that holds all of `tokens`."""
        found = self.find(tokens, key)
        return found[0] if found and found[1] == len(tokens) else None

    def within(self, tokens: Sequence[int], key: bytes) -> list[Record]:
        """The records whose tokens are a beginning of `tokens`, or all of them."""
        tree = self._trees.get(key)
        if tree is None:
            return []
        node, matched = tree.walk(token_array(tokens))
        return [step.value.record for step in node.path() if step.end <= matched and step.value.record is not None]


def choose_victims(files: Iterable[Listed], needed: int, *, capacity: int, free: int) -> list[str] | None:
    """Which files have to go so that one of `needed` bytes comes in: the least recently used ones.

    `capacity` is what all files may take together, `free` what the disk has left to give. None when it cannot come in.
    """
    ordered = sorted(files, key=lambda file: file.used)
    total = sum(file.n_bytes for file in ordered)
    excess = max(total + needed - capacity, needed - free)
    if excess > total:
        return None
    victims = []
    for file in ordered:
        if excess <= 0:
            break
        victims.append(file.name)
        excess -= file.n_bytes
    return victims
