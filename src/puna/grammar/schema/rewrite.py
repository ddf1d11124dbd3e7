"""A schema made into one that the constraint engine enforces as it stands.

Every text that the result allows is valid under the original, unless something had to be dropped, which `losses` lists.
The other way round the result may be narrower: where the engine has no means for exactly what a keyword says, a part of it
is taken that the engine does have means for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

from puna.grammar.schema.document import Document, Place, Schema, SchemaError, TooCostly
from puna.grammar.schema.values import KEYWORD_TYPES, TYPES, listed_types

MAX_SCHEMAS = 60_000
"""Most schemas in the result, which may be larger than the original."""

MAX_NESTED = 30
"""How many definitions are rewritten inside each other."""

MAX_INLINED = 4
"""How many references in a row are replaced by what they refer to."""


class Effort(IntEnum):
    """How much is tried. The engine has limits of its own; where they are reached, less is asked of it."""

    LEAST = 0
    """Structure and types."""
    LITTLE = 1
    """Patterns and formats as well."""
    MUCH = 2
    """All but telling overlapping branches apart."""
    ALL = 3


Out = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Loss:
    """A keyword that is not enforced."""

    pointer: str
    """Where it stands, as a JSON pointer."""
    keyword: str
    reason: str

    def __str__(self) -> str:
        return f"{self.pointer}: '{self.keyword}' is not fully enforced: {self.reason}"


@dataclass(slots=True)
class Node:
    """A schema that is being rewritten."""

    schema: dict[str, Any]
    place: Place
    out: Out = field(default_factory=dict)
    """Keywords of the result."""
    more: list[Any] = field(default_factory=list)
    """Further schemas, rewritten, that must hold as well."""
    done: set[str] = field(default_factory=set)
    """Groups of keywords that were rewritten together, and keywords that another one has taken care of."""


class Checks(NamedTuple):
    """What the engine knows of regular expressions."""

    usable: Callable[[str, int | None, int | None], str]
    """What is wrong with a pattern and the least and greatest length of a string; nothing if they can be enforced."""
    apart: Callable[[tuple[str, ...]], bool]
    """Whether it is sure that no text matches two of the patterns."""


Handler = Callable[["Rewriter", Node, str, Any], None]


class Rewriter:
    """Rewrites one document."""

    def __init__(self, root: Any, handlers: dict[str, Handler], checks: Checks, effort: Effort, deadline: float) -> None:
        """`deadline` is a time of this thread's processor clock."""
        self.document = Document(root)
        self.losses: dict[Loss, None] = {}
        self.usable = checks.usable
        self.apart = checks.apart
        self.effort = effort
        self._handlers = handlers
        self._definitions: dict[str, Any] = {}
        self._names: dict[str, str] = {}
        self._sources: dict[str, tuple[Any, Place]] = {}
        self._waiting: list[str] = []
        self._busy: set[str] = set()
        self._n_schemas = 0
        self._deadline = deadline

    def run(self) -> Out:
        """The rewritten document. Raises `SchemaError` for what is no schema, or takes too long."""
        root = self.refer(self.document.root, Place("#", self.document.base))
        while self._waiting:
            self._define(self._waiting.pop())
        return {"$ref": root, "$defs": self._definitions}

    def _define(self, name: str) -> None:
        if name not in self._definitions and name not in self._busy:
            if len(self._busy) > MAX_NESTED:
                return
            self._busy.add(name)
            self._definitions[name] = self.rewrite(*self._sources[name])
            self._busy.discard(name)

    def refer(self, schema: Any, place: Place) -> str:
        """A reference to the rewritten form of a schema, which is made once, later."""
        name = self._names.get(place.pointer)
        if name is None:
            name = self._names[place.pointer] = f"s{len(self._names)}"
            self._sources[name] = schema, place
            self._waiting.append(name)
        return f"#/$defs/{name}"

    def solid(self, schema: Any, depth: int = 0) -> Any:
        """A rewritten schema with the definition itself in place of a reference to it.

        The engine cannot combine a reference with other keywords while what it refers to is being read.
        """
        if not isinstance(schema, dict) or depth > MAX_INLINED:
            return schema
        if schema.keys() == {"$ref"}:
            name = schema["$ref"].rpartition("/")[2]
            self._define(name)
            if name not in self._definitions:  # it contains itself
                return schema
            body = self._definitions[name]
            self.count(_size(body))
            return self.solid(body, depth + 1)
        if "anyOf" in schema:
            return {**schema, "anyOf": [self.solid(option, depth + 1) for option in schema["anyOf"]]}
        return schema

    def rewrite(self, schema: Any, place: Place, *, infer: bool = True) -> Schema:
        """The rewritten form of a schema. With `infer` one without a type gets that which its keywords speak of."""
        self.count()
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            raise SchemaError(place.pointer, "a schema is an object, true or false")
        node = Node(schema, place.entered(schema))
        types = listed_types(schema)
        for keyword, value in schema.items():
            handler = self._handlers.get(keyword)
            if handler is None or keyword in node.done:
                continue
            kind = KEYWORD_TYPES.get(keyword)
            if types is not None and kind is not None and kind not in types and not (kind == "number" and "integer" in types):
                continue  # it says nothing about the values that the type allows
            handler(self, node, keyword, value)
        if infer and types is None:
            _infer_type(node)
        return self._joined(node)

    def _joined(self, node: Node) -> Schema:
        """What the node's keywords came to."""
        self._check_string(node)
        reference = node.out.pop("$ref", None)
        more = [part for part in node.more if part is not True]
        if reference is not None:
            more.insert(0, {"$ref": reference})
        if False in more:
            return False
        if not node.out and len(more) <= 1:
            return more[0] if more else True
        if self.effort is Effort.LEAST and more:
            return self._largest(node, more)
        if any(self._is_unfinished(part) for part in more):
            return self._later(node)
        if more:
            node.out["allOf"] = [self.solid(part) for part in more]
        return node.out

    def _largest(self, node: Node, more: list[Any]) -> Schema:
        """One part alone, the node's own keywords or else what says most: nothing has to be combined then."""
        for keyword in _APPLICATORS & node.schema.keys():
            self.lose(node.place, keyword, "with it the schema is too complex")
        if node.out.keys() - {"type"}:
            return node.out
        largest: Schema = max(more, key=_size)
        return largest

    def _is_unfinished(self, part: Any) -> bool:
        """Whether a part refers to a definition that is just being rewritten, so that it cannot stand in its place."""
        if not isinstance(part, dict) or part.keys() != {"$ref"}:
            return False
        name = part["$ref"].rpartition("/")[2]
        return name in self._busy and name not in self._definitions

    def _later(self, node: Node) -> Schema:
        """A reference to the node, which is rewritten once the definitions are done that it is made of."""
        key = f"later {node.place.pointer}"
        name = self._names.get(key)
        if name is not None:
            return {"$ref": f"#/$defs/{name}"}
        name = self._names[key] = f"s{len(self._names)}"
        self._sources[name] = node.schema, node.place
        self._waiting.insert(0, name)
        return {"$ref": f"#/$defs/{name}"}

    def _check_string(self, node: Node) -> None:
        """Give up bounds on the length where they make a pattern too complex."""
        pattern, low, high = node.out.get("pattern"), node.out.get("minLength"), node.out.get("maxLength")
        if pattern is None or (low is None and high is None) or not self.usable(pattern, low, high):
            return
        for keyword in ("minLength", "maxLength"):
            if node.out.pop(keyword, None) is not None:
                self.lose(node.place, keyword, "it cannot be combined with the pattern")

    def enough(self, node: Node, keyword: str, effort: Effort) -> bool:
        """Whether the keyword is worth trying; if not, it is lost."""
        if self.effort >= effort:
            return True
        self.lose(node.place, keyword, "with it the schema is too complex")
        return False

    def lose(self, place: Place, keyword: str, reason: str) -> None:
        """Note that a keyword is not enforced."""
        self.losses[Loss(place.pointer, keyword, reason)] = None

    def count(self, n: int = 1) -> None:
        """Count work. Raises `TooCostly` when it is too much."""
        self._n_schemas += n
        if self._n_schemas > MAX_SCHEMAS or time.thread_time() > self._deadline:
            raise TooCostly("#", "written out it has too many parts")

    def target(self, reference: Any, place: Place) -> tuple[Any, Place] | None:
        """What a reference leads to, references to references followed; None for what is not in the document."""
        seen: set[str] = set()
        while True:
            if not isinstance(reference, str):
                raise SchemaError(place.child("$ref").pointer, "a reference is a text")
            found = self.document.find(reference, place.base)
            if found is None:
                return None
            schema, place = found
            if place.pointer in seen:
                raise SchemaError(place.pointer, "it refers to itself and to nothing else")
            seen.add(place.pointer)
            if not isinstance(schema, dict) or set(schema) != {"$ref"}:
                return schema, place
            place = place.entered(schema)
            reference = schema["$ref"]


_COMPANY = frozenset({"type", "enum", "const", "$ref", "allOf", "anyOf", "oneOf", "not", "if", "format"})
"""Keywords beside which a schema without a type is taken at its word."""


_APPLICATORS = frozenset(
    {"$ref", "allOf", "anyOf", "oneOf", "not", "if", "dependencies", "dependentRequired", "dependentSchemas"}
)


def _size(schema: Any) -> int:
    """How many objects, lists and values a schema has, counted up to where it matters."""
    n, stack = 0, [schema]
    while stack and n < MAX_SCHEMAS:
        value = stack.pop()
        n += 1
        if isinstance(value, dict):
            stack += value.values()
        elif isinstance(value, list):
            stack += value
    return n


def _infer_type(node: Node) -> None:
    if _COMPANY & node.schema.keys():
        return
    kinds = {KEYWORD_TYPES[keyword] for keyword in node.schema if keyword in KEYWORD_TYPES}
    if len(kinds) == 1:
        node.out = {"type": kinds.pop(), **node.out}


def count_of(node: Node, keyword: str) -> int | None:
    """The whole number that a keyword has, None where it is missing. Raises `SchemaError` for anything else."""
    value = node.schema.get(keyword)
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise SchemaError(node.place.child(keyword).pointer, "a whole number of at least 0 is expected")
    return value


def list_of(node: Node, keyword: str, value: Any) -> list[Any]:
    """A keyword's value, which has to be a list."""
    if not isinstance(value, list):
        raise SchemaError(node.place.child(keyword).pointer, "a list is expected")
    return value


def map_of(node: Node, keyword: str) -> dict[str, Any]:
    """A keyword's value, which has to be an object; an empty one where it is missing."""
    value = node.schema.get(keyword, {})
    if not isinstance(value, dict):
        raise SchemaError(node.place.child(keyword).pointer, "an object is expected")
    return value


def check_types(node: Node, types: list[Any]) -> list[str]:
    """Names of types. Raises `SchemaError` for what is none."""
    for kind in types:
        if kind not in TYPES and kind != "integer":
            raise SchemaError(node.place.child("type").pointer, f"{str(kind)[:50]!r} is not a type")
    return types
