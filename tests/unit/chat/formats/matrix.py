"""What works with each family, measured, as a table for the documentation.

`PYTHONPATH=src python -m tests.unit.chat.formats.matrix` writes it into `docs/chat-formats.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from puna.chat import SpecialTexts, render_chat
from puna.chat.formats.plan import Format, TurnRequest
from puna.chat.formats.table import NAMES as FORMATS
from puna.chat.tool_texts import format_of, texts_of
from puna.grammar import prepare
from tests.unit.chat.conversations import TOOLS as CONVERSATION_TOOLS
from tests.unit.chat.differences import DIFFERENCES
from tests.unit.chat.formats.cases import MODULES
from tests.unit.chat.formats.harness import TOOLS, Case, Family, accepts, parse, plain, plan
from tests.unit.chat.formats.test_round_trip import NOT_SO
from tests.unit.chat.helpers import NAMES, assistant, real, system, user
from tests.unit.chat.test_stability import UNSTABLE

DOCUMENT = Path(__file__).parents[4] / "docs" / "chat-formats.md"
NONE = SpecialTexts()
YES, NO = "yes", "no"

Measure = Callable[[Sequence[str], Sequence[Family]], str]


def table() -> str:
    """A row for every format, in the order in which they are looked for."""
    head = ["Format", *COLUMNS, "Templates"]
    templates: dict[str, list[str]] = {name: [] for name in FORMATS}
    for name in NAMES:
        templates[format_of(real(name)).name].append(name)
    families: dict[str, list[Family]] = {name: [] for name in FORMATS}
    for module in MODULES:
        families[module.FAMILY.format.name].append(module.FAMILY)
    rows = [head, ["---"] * len(head)]
    for name in FORMATS:
        cells = [measure(templates[name], families[name]) for measure in COLUMNS.values()]
        rows.append([name, *cells, ", ".join(templates[name])])
    return "".join(f"| {' | '.join(_escaped(cell) for cell in row)} |\n" for row in rows)


def _escaped(cell: str) -> str:
    return cell.replace("|", r"\|")


def differences() -> str:
    """A list of what is special about some templates."""
    found: dict[str, list[str]] = {}
    for name, (_, reason) in DIFFERENCES.items():
        found.setdefault(f"Rendered otherwise than by `transformers`: the template {reason}", []).append(name)
    for name, reason in NOT_SO.items():
        found.setdefault(f"Earlier turns are not written as the model writes them: the template {reason}", []).append(name)
    for name, reason in UNSTABLE.items():
        found.setdefault(f"The next prompt does not begin with this one: {reason}", []).append(name)
    return "".join(f"- {what}: {', '.join(sorted(names))}.\n" for what, names in found.items())


def _share(found: Sequence[bool], *, instead: str) -> str:
    """In how many templates something is so, and what is done in the others."""
    if not found:
        return "–"
    if all(found):
        return YES
    return f"{sum(found)} of {len(found)}, else {instead}" if any(found) else instead


def _system(templates: Sequence[str], families: Sequence[Family]) -> str:
    for name in templates:
        assert "Be brief" in render_chat(real(name), [system("Be brief"), user("hello")], special_tokens=NONE).text
    return _share([real(name).capabilities.system for name in templates], instead="with the question")


def _tools(templates: Sequence[str], families: Sequence[Family]) -> str:
    for name in templates:
        text = render_chat(
            real(name),
            [user("hello")],
            special_tokens=NONE,
            tools=CONVERSATION_TOOLS,
            texts=texts_of(format_of(real(name))),
        ).text
        assert "get_weather" in text and "Weather of a city" in text
    return _share([real(name).capabilities.tools for name in templates], instead="described")


def _cases(families: Sequence[Family]) -> Iterator[tuple[Format, Case]]:
    return ((family.format, case) for family in families for case in family.cases)


def _case(families: Sequence[Family], name: str) -> Iterator[tuple[Format, Case]]:
    return ((form, case) for form, case in _cases(families) if case.name == name)


def _reads(form: Format, case: Case) -> bool:
    message = parse(plan(form, case), [case.raw], cut=case.cut)
    return [call.name for call in message.tool_calls] == [name for name, _ in case.calls]


def _holds(form: Format, case: Case, tools: Sequence[str], *, parallel: bool = True) -> bool:
    """Whether the case is among the outputs where one of some tools has to be called."""
    listed = tuple(tool for tool in case.tools if tool.name in tools)
    request = TurnRequest(tools=listed, choice="required", parallel=parallel, prompt=case.prompt)
    constraint = form.plan(request).constraint
    assert constraint is not None and not constraint.triggers
    return accepts(prepare(constraint).compiled, case.raw.encode())


def _parallel(templates: Sequence[str], families: Sequence[Family]) -> str:
    """Several calls are read, and `parallel_tool_calls` decides whether there may be more than one."""
    found = list(_case(families, "parallel"))
    names = ("get_weather", "now")
    if not found or not all(_reads(form, case) for form, case in found):
        return NO
    if all(_holds(form, case, names) and not _holds(form, case, names, parallel=False) for form, case in found):
        return YES
    return "read, not written"


def _required(templates: Sequence[str], families: Sequence[Family]) -> str:
    names = ("get_weather", "now")
    held = [
        _reads(form, case) and _holds(form, case, names) and not _holds(form, text, names)
        for (form, case), (_, text) in zip(_case(families, "call"), _case(families, "text"), strict=True)
    ]
    return YES if held and all(held) else NO


def _named(templates: Sequence[str], families: Sequence[Family]) -> str:
    held = [_holds(form, case, ["get_weather"]) and not _holds(form, case, ["now"]) for form, case in _case(families, "call")]
    return YES if held and all(held) else NO


def _reasoning(templates: Sequence[str], families: Sequence[Family]) -> str:
    """Thoughts are told from the answer; by which tags."""
    tags = []
    for form, case in _cases(families):
        thinking = plan(form, case).thinking
        if case.reasoning and thinking:
            assert parse(plan(form, case), [case.raw], cut=case.cut).reasoning_content == case.reasoning
            tags.append(f"`{thinking.begin.strip()}`")
    for name in () if tags else templates:
        turn = format_of(real(name)).plan(TurnRequest())
        if turn.thinking:
            raw = f"{turn.thinking.begin}Hm.{turn.thinking.closing}Yes."
            assert plain(parse(turn, [raw])) == ("Yes.", "Hm.", [])
            tags.append(f"`{turn.thinking.begin.strip()}`")
    return ", ".join(dict.fromkeys(tags)) or NO


def _prefill(templates: Sequence[str], families: Sequence[Family]) -> str:
    """An answer that was begun goes on: the prompt ends with its beginning, and the rest is read as content."""
    found = []
    for name in templates:
        form, template = format_of(real(name)), real(name)
        prompt = render_chat(template, [user("hi"), assistant("Sure,")], special_tokens=NONE).text
        for tools in ((), TOOLS):
            turn = form.plan(TurnRequest(tools=tools, prompt=prompt, continues=True))
            message = parse(turn, [" to=o", "f course, <b>."])
            found.append(prompt.endswith("Sure,") and plain(message) == (" to=of course, <b>.", None, []))
    return _share(found, instead=NO)


def _streaming(templates: Sequence[str], families: Sequence[Family]) -> str:
    """The same message character by character."""
    return YES if all(_streams(form, case) for form, case in _cases(families)) else NO


def _streams(form: Format, case: Case) -> bool:
    turn = plan(form, case)
    return plain(parse(turn, list(case.raw), cut=case.cut)) == plain(parse(turn, [case.raw], cut=case.cut))


COLUMNS: dict[str, Measure] = {
    "System": _system,
    "Tools": _tools,
    "Parallel": _parallel,
    "Required": _required,
    "Named": _named,
    "Reasoning": _reasoning,
    "Prefill": _prefill,
    "Streaming": _streaming,
}


BLOCKS: dict[str, Callable[[], str]] = {"table": table, "differences": differences}
"""The parts of the documentation that are made here."""


def marks(block: str) -> tuple[str, str]:
    """What surrounds a block."""
    return f"<!-- {block}: begin -->\n", f"<!-- {block}: end -->\n"


def written(block: str) -> str:
    """A block as it is in the documentation."""
    begin, end = marks(block)
    return DOCUMENT.read_text(encoding="utf-8").partition(begin)[2].partition(end)[0]


def write() -> None:
    """Make all blocks anew."""
    text = DOCUMENT.read_text(encoding="utf-8")
    for block, make in BLOCKS.items():
        begin, end = marks(block)
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}{make()}{end}{rest.partition(end)[2]}"
    DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
