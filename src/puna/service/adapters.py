"""How strongly each loaded adapter counts for requests that do not say."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from puna.types import ModelFacts

Scales = tuple[tuple[int, float], ...]
"""(adapter id, scale) pairs, by id, none with a scale of 0."""


class AdapterScales:
    """The scales as the command line set them, until they are set anew; a worker's restart changes nothing about that.

    A request gets those that hold when it is admitted, and keeps them.
    """

    def __init__(self, facts: Callable[[], ModelFacts]) -> None:
        """`facts` are those of the loaded model; it raises while there is none."""
        self._facts = facts
        self._set: dict[int, float] | None = None

    def __len__(self) -> int:
        """How many adapters are loaded."""
        return len(self._facts().adapters)

    @property
    def all(self) -> list[float]:
        """Every adapter's scale, by id."""
        adapters = self._facts().adapters
        if self._set is None:
            return [adapter.scale for adapter in adapters]
        return [self._set.get(id, 0.0) for id in range(len(adapters))]

    @property
    def current(self) -> Scales:
        """The adapters that count."""
        return chosen(enumerate(self.all))

    def set(self, scales: Iterable[tuple[int, float]]) -> None:
        """Set all of them: those that are not named count for nothing."""
        self._set = dict(scales)


def chosen(scales: Iterable[tuple[int, float]]) -> Scales:
    """Of pairs of id and scale those that count; of an adapter that is named twice the last one does."""
    return tuple((id, scale) for id, scale in sorted(dict(scales).items()) if scale)
