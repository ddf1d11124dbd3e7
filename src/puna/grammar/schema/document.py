"""A schema as a document: places in it, and what its references lead to. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

Schema = bool | dict[str, Any]


class SchemaError(ValueError):
    """A schema that cannot be used at all; says where, as a JSON pointer, and why."""

    def __init__(self, pointer: str, reason: str) -> None:
        super().__init__(f"{pointer or 'the root'}: {reason}" if pointer != "#" else f"the schema: {reason}")
        self.pointer = pointer


class TooCostly(SchemaError):
    """Writing a schema out would take too long."""


class Impossible(SchemaError):
    """No value is valid under a schema."""


@dataclass(frozen=True, slots=True)
class Base:
    """The resource that a place belongs to: references without a host or a path are relative to it."""

    uri: str
    root: Any
    pointer: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a document a schema stands."""

    pointer: str
    """A JSON pointer, written as a fragment: `#/properties/a`."""
    base: Base

    def child(self, *keys: str | int) -> Place:
        """A place further in."""
        return Place(self.pointer + "".join(f"/{escape(str(key))}" for key in keys), self.base)

    def entered(self, schema: dict[str, Any]) -> Place:
        """The place with the base that the schema's own id makes."""
        id = own_id(schema)
        if not id or id.startswith("#"):
            return self
        return Place(self.pointer, Base(urldefrag(urljoin(self.base.uri, id)).url, schema, self.pointer))


def escape(key: str) -> str:
    """A key as a part of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def own_id(schema: dict[str, Any]) -> str:
    """The schema's `$id`, or its `id` in the older drafts; empty for none."""
    id = schema.get("$id", schema.get("id"))
    return id if isinstance(id, str) else ""


class Document:
    """A root schema, and where its references lead."""

    def __init__(self, root: Any) -> None:
        self.root = root
        start = own_id(root) if isinstance(root, dict) else ""
        self.base = Base("" if start.startswith("#") else urldefrag(start).url, root, "#")
        self._resources: dict[str, Place] = {self.base.uri: Place("#", self.base)}
        self._anchors: dict[tuple[str, str], Place] = {}
        for schema, place in _objects(root, Place("#", self.base)):
            self._register(schema, place)

    def _register(self, schema: dict[str, Any], place: Place) -> None:
        id = own_id(schema)
        inside = place.entered(schema)
        if id and not id.startswith("#"):
            self._resources.setdefault(inside.base.uri, inside)
        elif id:
            self._anchors.setdefault((inside.base.uri, id[1:]), inside)
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(anchor := schema.get(keyword), str):
                self._anchors.setdefault((inside.base.uri, anchor), inside)

    def find(self, reference: str, base: Base) -> tuple[Any, Place] | None:
        """What a reference leads to; None for what is not in the document."""
        uri, fragment = urldefrag(urljoin(base.uri, reference) if not reference.startswith("#") else base.uri + reference)
        resource = self._resources.get(uri)
        if resource is None:
            return None
        found = self._within(resource, fragment)
        # Many schemas carry ids that were never meant to be bases: their pointers start at the very root.
        return found if found is not None or not reference.startswith("#") else self._within(Place("#", self.base), fragment)

    def _within(self, resource: Place, fragment: str) -> tuple[Any, Place] | None:
        if fragment and not fragment.startswith("/"):
            place = self._anchors.get((resource.base.uri, unquote(fragment)))
            return None if place is None else self._walk(Place("#", self.base), place.pointer[1:])
        found = self._walk(resource, unquote(fragment))
        return found if found is not None else self._walk(resource, fragment)

    def _walk(self, start: Place, pointer: str) -> tuple[Any, Place] | None:
        value, place = start.base.root, Place(start.base.pointer, start.base)
        for part in pointer.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict) and key in value:
                place = place.entered(value).child(key)
                value = value[key]
            elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
                place = place.child(key)
                value = value[int(key)]
            else:
                return None
        return value, place


def _objects(value: Any, place: Place) -> Iterator[tuple[dict[str, Any], Place]]:
    """Every object in a value, with its place."""
    stack: list[tuple[Any, Place]] = [(value, place)]
    while stack:
        value, place = stack.pop()
        if isinstance(value, dict):
            yield value, place
            inside = place.entered(value)
            stack += [(inner, inside.child(key)) for key, inner in value.items() if isinstance(inner, (dict, list))]
        elif isinstance(value, list):
            stack += [(inner, place.child(index)) for index, inner in enumerate(value) if isinstance(inner, (dict, list))]
