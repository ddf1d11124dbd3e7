"""Reads a turn that is written as a description says."""

from __future__ import annotations

from collections.abc import Sequence

from puna.chat.formats.description import Description, Reader, Thinking
from puna.chat.formats.emitter import Emitter
from puna.chat.formats.ids import new_call_id
from puna.chat.formats.plan import Tool
from puna.chat.formats.scanner import marks_of
from puna.chat.formats.stepped import SteppedParser

_DISTINCT = 4
"""Characters that a closing mark has at least, to be left out of text where it closes nothing."""


class TurnParser(SteppedParser):
    """One answer's parser. It is always in one of a few states, each of them a method."""

    def __init__(
        self,
        description: Description,
        tools: Sequence[Tool] = (),
        *,
        calls: bool = True,
        open: bool = False,
        closed: bool = False,
        begun: bool = False,
        separate: bool = True,
    ) -> None:
        """`calls` is whether calls are looked for, `open` whether the output begins inside thoughts, `closed` whether thoughts
        have ended before it, `begun` whether the answer has begun before it, `separate` whether thoughts are told from the
        answer."""
        thinking = description.thinking or Thinking(begin="", end="")
        self._calls = description.calls if calls else None
        self._tools = tools
        self._separate = separate
        trim = self._calls is not None or (separate and description.thinking is not None)
        silent = self._calls.silent if self._calls else ()
        super().__init__(Emitter(self._calls.new_id if self._calls else new_call_id, trim=trim, silent=silent))
        if trim and not begun and (closed or description.before):
            self._out.end_of_thought()  # blanks that come first belong to the format

        self._think_begin, self._think_end = thinking.begin.strip(), thinking.end.strip()
        self._openers = self._calls.openers if self._calls else ()
        self._call_begin = self._calls.call_begin.strip() if self._calls else ""
        self._call_end = self._calls.call_end.strip() if self._calls else ""
        self._section_end = self._calls.end.strip() if self._calls else ""
        closers = (self._call_end, self._section_end, *(self._calls.body.closing if self._calls else ()))
        self._ignored = {mark for mark in closers if len(mark) >= _DISTINCT} | set(description.dropped)
        self._first_marks = marks_of(self._think_begin, self._think_end, *description.dropped, *description.ends, *self._openers)
        self._thought_first_marks = marks_of(self._think_begin, self._think_end, *description.dropped)
        self._ends = description.ends
        again = self._think_begin if thinking.again else ""
        self._text_marks = marks_of(*self._openers, self._call_begin, *self._ignored, *self._ends, again)
        self._over_marks = marks_of(*self._openers)
        self._thought_marks = marks_of(self._think_end, *(self._openers if thinking.calls_end else ()))
        self._between_marks = marks_of(self._call_begin, self._section_end)
        self._close_marks = marks_of(self._call_end)
        self._discard_marks = marks_of(self._call_end, self._section_end, *self._openers)

        self._bare = self._calls is not None and self._calls.bare
        self._ends_blank = trim and bool(description.after)
        self._wrapper = marks_of(description.wrapper[0])
        self._wrapper_end = description.wrapper[1]
        self._separators = "[,]" if self._calls and self._calls.array else self._calls.between.strip()[:1] if self._calls else ""

        self._lead = ""
        """What opened the section, where that is text if no call follows."""

        self._reader: Reader | None = None
        self._in_section = False
        self._n_before = 0
        """Calls before the one that is being read."""
        self._state = self._text if begun else self._start
        if open or (thinking.always and not closed and not begun):
            self._state = self._thought if open else self._unopened

    def _end(self, *, cut: bool) -> None:
        """What may have become a call without a mark is text, unless it was cut off."""
        reads = self._state == self._call and self._out.n_begun == self._n_before
        if not cut and (self._lead or (reads and self._bare)):
            self._out.text(self._lead + (self._reader.held if reads and self._reader else ""))
        self._out.finish(trim=self._ends_blank)

    # Thoughts

    def _start(self) -> bool:
        """Nothing but blanks has come."""
        self._out.text(self._scanner.space())
        found = self._scanner.take_any(self._first_marks)
        if not found:
            return found is not None and self._go(self._content)
        if found == self._think_end:
            return self._close_thought(found)
        if found in self._openers:
            return self._open_calls(found)
        if found in self._ends:
            return self._go(self._over)
        return self._open_thought(found) if found == self._think_begin else True

    def _unopened(self) -> bool:
        """Thoughts come first, whether they are opened or not."""
        blanks = self._scanner.space()
        if not self._separate:
            self._out.text(blanks)
        found = self._scanner.take_any(self._thought_first_marks)
        if found and found != self._think_begin:
            return True
        return found is not None and self._open_thought(found)

    def _open_thought(self, mark: str) -> bool:
        if not self._separate:
            self._out.text(mark)
        return self._go(self._thought)

    def _thought(self) -> bool:
        text, mark = self._scanner.until(self._thought_marks)
        if self._separate:
            self._out.reasoning(text)
        else:
            self._out.text(text)
        if not mark:
            return False
        return self._close_thought(mark)

    def _close_thought(self, mark: str) -> bool:
        if self._separate:
            self._out.end_of_thought()
        if mark != self._think_end:
            return self._open_calls(mark)
        if not self._separate:
            self._out.text(mark)
        return self._go(self._content)

    # The answer

    def _content(self) -> bool:
        """The answer begins: with a tag, or a call that has no mark, perhaps."""
        if self._wrapper_end:
            self._out.text(self._scanner.space())
            found = self._scanner.take_any(self._wrapper)
            if found is None:
                return False
            if found:
                self._ignored.add(self._wrapper_end)
                self._text_marks = marks_of(*self._text_marks.texts, self._wrapper_end)
        if self._calls is None or not self._calls.bare:
            return self._go(self._text)
        self._out.text(self._scanner.space())
        if self._scanner.empty:
            return False
        return self._begin_call()

    def _text(self) -> bool:
        text, mark = self._scanner.until(self._text_marks)
        self._out.text(text)
        if not mark:
            return False
        if mark in self._openers:
            return self._open_calls(mark)
        if mark in self._ignored:
            return True
        if mark in self._ends:
            return self._go(self._over)
        if mark == self._call_begin:
            return self._begin_call()
        return self._open_thought(mark)

    def _over(self) -> bool:
        """The answer has ended, but a call may follow."""
        _, mark = self._scanner.until(self._over_marks)
        return bool(mark) and self._open_calls(mark)

    # Calls

    def _open_calls(self, mark: str) -> bool:
        assert self._calls is not None
        self._in_section = bool(self._calls.begin)
        self._lead = mark if self._calls.word else ""
        return self._go(self._between) if self._in_section else self._begin_call()

    def _between(self) -> bool:
        """Inside a section, not inside a call."""
        assert self._calls is not None
        self._scanner.space()
        while not self._scanner.empty and self._scanner.peek() in self._separators:
            self._scanner.char()
            self._scanner.space()
        if self._scanner.empty:
            return False
        found = self._scanner.take_any(self._between_marks)
        if found is None:
            return False
        if found and found == self._section_end:
            self._in_section = False
            if self._lead:
                self._out.text(self._lead + found)
                self._lead = ""
            return self._go(self._text)
        if found or not self._call_begin:
            return self._begin_call()
        return self._go(self._text)

    def _begin_call(self) -> bool:
        assert self._calls is not None
        self._reader = self._calls.body.reader(self._tools, self._calls.closers)
        self._n_before = self._out.n_begun
        return self._go(self._call)

    def _call(self) -> bool:
        assert self._reader is not None
        verdict = self._reader.read(self._scanner, self._out)
        if self._out.n_begun > self._n_before:
            self._lead = ""
        if verdict == "more":
            return False
        if verdict == "done":
            return self._go(self._close)
        if self._out.n_begun > self._n_before:
            return self._go(self._discard)
        self._in_section = False
        held = self._reader.held
        for mark in self._ignored:
            held = held.replace(mark, "")
        self._out.text(self._lead + held)
        self._lead = ""
        return self._go(self._text)

    def _close(self) -> bool:
        """A call is complete but for its closing mark."""
        assert self._calls is not None
        self._scanner.space()
        while self._call_end and not self._scanner.empty and self._scanner.peek() == "}":  # one bracket too many is common
            self._scanner.char()
            self._scanner.space()
        if self._scanner.take_any(self._close_marks) is None:
            return False
        return self._next_call()

    def _next_call(self) -> bool:
        assert self._calls is not None
        if self._in_section:
            return self._go(self._between)
        return self._go(self._next_bare if self._calls.bare else self._text)

    def _next_bare(self) -> bool:
        """After a call without marks: another one, perhaps after a semicolon."""
        assert self._calls is not None
        self._scanner.space()
        while not self._scanner.empty and self._scanner.peek() in ";,":
            self._scanner.char()
            self._scanner.space()
        if self._scanner.empty:
            return False
        return self._begin_call() if self._scanner.peek() == self._calls.body.opening else self._go(self._text)

    def _discard(self) -> bool:
        """A call broke after it had begun."""
        _, mark = self._scanner.until(self._discard_marks)
        if not mark:
            return False
        if mark == self._call_end:
            return self._next_call()
        if mark == self._section_end:
            self._in_section = False
            return self._go(self._text)
        return self._open_calls(mark)
