"""Events of one turn, numbered and free of the blanks that only belong to the format."""

from __future__ import annotations

from collections.abc import Callable, Collection

from puna.chat.events import CallArguments, CallBegin, Event, Reasoning, Text

NewId = Callable[[], str]
"""Makes the id of a call that has none of its own."""


class Emitter:
    """Collects events. Neighbours of a kind become one.

    Blanks at either end of thoughts are left out, and so are those of the answer where thoughts or calls adjoin it.
    """

    def __init__(self, new_id: NewId, *, trim: bool = True, silent: Collection[str] = ()) -> None:
        """`trim` is whether blanks are left out at all; calls of the names in `silent` are left out."""
        self._new_id = new_id
        self._trim = trim
        self._events: list[Event] = []
        self._held = ""
        """Blanks of the answer of which it is not known yet what they lie before."""
        self._thought = ""
        """The same of thoughts."""
        self._has_text = False
        self._has_thought = False
        self._fresh = False
        """Whether thoughts or a call have come since the last text."""
        self._silent = silent
        self._muted = False
        """Whether the call that began last is left out."""
        self._n_calls = 0
        self.n_begun = 0
        """How many calls have begun, those that are left out with them."""

    @property
    def said(self) -> bool:
        """Whether anything of the answer has come that is not blank."""
        return self._has_text

    def text(self, text: str) -> None:
        """The next piece of the answer."""
        if not self._trim:
            self._add_text(text)
            return
        body = text.rstrip()
        if not body:
            self._hold(text)
            return
        lead = body[: len(body) - len(body.lstrip())]
        self._hold(lead)
        self._add_text(self._held + body[len(lead) :])
        self._held = text[len(body) :]
        self._has_text, self._fresh = True, False

    def _hold(self, blanks: str) -> None:
        if not self._fresh:
            self._held += blanks
        elif self._has_text and blanks and not self._held:
            self._held, self._fresh = blanks, False

    def reasoning(self, text: str) -> None:
        """The next piece of what is thought."""
        body = text.rstrip()
        if not body:
            self._thought += text if self._has_thought else ""
            return
        head = self._thought + body
        self._add_reasoning(head if self._has_thought else head.lstrip())
        self._thought = text[len(body) :]
        self._has_thought = True

    def end_of_thought(self) -> None:
        """The thoughts end here, for now."""
        self._thought = "\n" if self._has_thought else ""
        self._fresh = True
        self._held = self._held if self._has_text else ""

    def begin(self, name: str, own_id: str | None = None) -> None:
        """A call begins."""
        self._fresh = True
        self._held = self._held if self._has_text else ""
        self.n_begun += 1
        self._muted = name in self._silent
        if not self._muted:
            self._events.append(CallBegin(self._n_calls, own_id or self._new_id(), name))
            self._n_calls += 1

    def arguments(self, text: str) -> None:
        """The next piece of the arguments of the call that began last."""
        if not text or self._muted:
            return
        last = self._events[-1] if self._events else None
        if isinstance(last, CallArguments):
            self._events[-1] = CallArguments(last.index, last.text + text)
        else:
            self._events.append(CallArguments(self._n_calls - 1, text))

    def take(self) -> list[Event]:
        """The events since the last time."""
        events, self._events = self._events, []
        return events

    def finish(self, *, trim: bool = False) -> None:
        """The turn ends: blanks that follow the answer belong to it, unless `trim` says that they are the format's."""
        if not self._fresh and not trim:
            self._add_text(self._held)
        self._held = ""

    def _add_text(self, text: str) -> None:
        last = self._events[-1] if self._events else None
        if isinstance(last, Text):
            self._events[-1] = Text(last.text + text)
        elif text:
            self._events.append(Text(text))

    def _add_reasoning(self, text: str) -> None:
        last = self._events[-1] if self._events else None
        if isinstance(last, Reasoning):
            self._events[-1] = Reasoning(last.text + text)
        elif text:
            self._events.append(Reasoning(text))
