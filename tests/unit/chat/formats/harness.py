"""What every family's format is held to, whatever it looks like."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jsonschema
import numpy as np
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

from puna.chat.events import MessageBuilder
from puna.chat.formats.plan import Choice, Format, Tool, TurnPlan, TurnRequest
from puna.chat.messages import Message
from puna.grammar import LazyTrigger, prepare
from puna.types import Constraint

BYTES = LLTokenizer("byte")
MAX_WALK = 3000
"""Bytes after which a random output is given up."""
SHORT = 60
"""Characters up to which an output is cut in two everywhere, longer ones not within words."""
PIECE = 12
"""Characters of the pieces in which longer ones come, with cuts everywhere."""

TOOLS = (
    Tool(
        name="get_weather",
        description="Tells the weather.",
        parameters={
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer"},
                "where": {
                    "type": "object",
                    "properties": {"lat": {"type": "number"}, "names": {"type": "array", "items": {"type": "string"}}},
                    "required": ["lat"],
                    "additionalProperties": False,
                },
                "unit": {"type": "string", "enum": ["C", "F"]},
                "exact": {"type": "boolean"},
            },
            "required": ["city"],
        },
    ),
    Tool(name="now", description="Tells the time."),
    Tool(
        name="run_code",
        description="Runs code.",
        parameters={"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]},
    ),
)
"""What the cases call. Those of `city` and `code` are free strings."""


@dataclass(frozen=True)
class Case:
    """One raw output and what it says."""

    name: str
    raw: str
    content: str | None = None
    reasoning: str | None = None
    calls: Sequence[tuple[str, str | dict[str, Any]]] = ()
    """Names and arguments, as text where it has to be exactly that, else as the value that the text stands for."""
    ids: Sequence[str] = ()
    """The calls' ids where the format has them in the output."""
    prompt: str = ""
    """The end of the prompt, where it matters."""
    well_formed: bool = True
    """Whether the grammar has to take it."""
    tools: Sequence[Tool] = TOOLS
    choice: Choice = "auto"
    cut: bool = False
    """Whether the output was cut off."""
    required: bool = True
    """Whether the grammar of required calls has to take it too, if nothing is said beside calls."""


@dataclass(frozen=True)
class Family:
    """A format with its cases."""

    format: Format
    cases: Sequence[Case]
    prompt: str = ""
    """The end of the prompt for random outputs."""
    control: Sequence[str] = ()
    """The control tokens of the family's vocabularies that its marks are made of; the marks themselves if empty."""
    tools: Sequence[Tool] = TOOLS
    endings: Sequence[str] = ()
    """Further texts that random outputs try now and then, so that they come to an end."""


def plan(form: Format, case: Case, choice: Choice | None = None) -> TurnPlan:
    return form.plan(TurnRequest(tools=tuple(case.tools), choice=choice or case.choice, prompt=case.prompt))


def parse(turn: TurnPlan, pieces: Sequence[str], *, cut: bool = False) -> Message:
    parser, builder = turn.parser(), MessageBuilder()
    for piece in pieces:
        builder.feed(parser.feed(piece))
    builder.feed(parser.finish(cut=cut))
    return builder.message()


def plain(message: Message) -> tuple[Any, ...]:
    """The message without its calls' ids."""
    return message.content, message.reasoning_content, [(call.name, call.arguments) for call in message.tool_calls]


def check_whole(form: Format, case: Case) -> None:
    """The message is the one that is expected."""
    message = parse(plan(form, case), [case.raw], cut=case.cut)
    calls = [
        (call.name, call.arguments if isinstance(expected[1], str) else json.loads(call.arguments))
        for call, expected in zip(message.tool_calls, case.calls, strict=False)
    ]
    assert (message.content, message.reasoning_content) == (case.content, case.reasoning), message
    assert calls == list(case.calls), message
    assert len(message.tool_calls) == len(case.calls), message
    assert not case.ids or [call.id for call in message.tool_calls] == list(case.ids)
    assert all(call.id for call in message.tool_calls)


def check_splits(form: Format, case: Case) -> None:
    """The message does not depend on how the output was split."""
    turn = plan(form, case)
    whole = plain(parse(turn, [case.raw], cut=case.cut))
    assert plain(parse(turn, list(case.raw), cut=case.cut)) == whole
    raw, n = case.raw, len(case.raw)
    for at in range(1, n):
        if n <= SHORT or not (raw[at - 1].isalnum() and raw[at].isalnum()):
            pieces = [raw[:at], raw[at:]]
            assert plain(parse(turn, pieces, cut=case.cut)) == whole, pieces
    for first in range(1, PIECE + 1) if n > SHORT else ():  # within words as well
        pieces = [raw[:first], *(raw[at : at + PIECE] for at in range(first, n, PIECE))]
        assert plain(parse(turn, pieces, cut=case.cut)) == whole, pieces


def check_truncated(form: Format, case: Case) -> None:
    """Output that is cut off anywhere gives the beginning of the whole message, and nothing else."""
    turn = plan(form, case)
    content, reasoning, calls = plain(parse(turn, [case.raw], cut=case.cut))
    for end in range(len(case.raw)):
        short = parse(turn, [case.raw[:end]], cut=True)
        assert (content or "").startswith(short.text.rstrip()), (case.raw[:end], short)
        assert (reasoning or "").startswith((short.reasoning_content or "").rstrip()), (case.raw[:end], short)
        assert len(short.tool_calls) <= len(calls)
        for got, (name, arguments) in zip(short.tool_calls, calls, strict=False):
            assert got.name == name
            assert arguments.startswith("" if got.arguments == "{}" else got.arguments), (case.raw[:end], short)
        if end % 8 == 0:  # often enough: whether a half mark is text does not matter for what came before it
            parse(turn, [case.raw[:end]])


def check_grammar(form: Format, case: Case) -> None:
    """What holds output to the format takes the case, from its trigger on, or from the beginning where calls are required."""
    constraint = constraint_of(form, case, case.choice)
    if constraint is not None:
        begun = triggered(constraint, case.raw) if constraint.triggers else case.raw.encode()
        if constraint.triggers:
            assert (begun is not None) == bool(case.calls), begun
        if begun is not None:
            assert accepts(constraint.compiled, begun), begun
    if case.calls and case.content is None and case.choice == "auto" and case.required:
        constraint = constraint_of(form, case, "required")
        assert constraint is not None
        assert accepts(constraint.compiled, case.raw.encode())


_constraints: dict[tuple[Any, ...], Constraint | None] = {}


def constraint_of(form: Format, case: Case, choice: Choice) -> Constraint | None:
    """What holds output to the format, prepared; made once for all cases that ask the same."""
    key = (id(form), id(case.tools), choice, case.prompt)
    if key not in _constraints:
        found = plan(form, case, choice).constraint
        _constraints[key] = prepare(found) if found is not None else None
    return _constraints[key]


def triggered(constraint: Constraint, raw: str) -> bytes | None:
    """What of the output is constrained."""
    lazy, data = LazyTrigger(constraint.triggers), raw.encode()
    for at in range(len(data)):
        begun = lazy.feed(-1, data[at : at + 1])
        if begun is not None:
            return begun + data[at + 1 :]
    return None


def accepts(compiled: str, data: bytes) -> bool:
    matcher = LLMatcher(BYTES, compiled, log_level=0)
    assert not matcher.is_error(), matcher.get_error()
    return matcher.try_consume_tokens(list(data)) == len(data) and bool(matcher.is_accepting())


class _Vocabulary:
    """Bytes, some control tokens, and an end."""

    def __init__(self, control: Sequence[str]) -> None:
        self.control = {text: 256 + place for place, text in enumerate(control)}
        self.tokens = [bytes([byte]) for byte in range(256)] + [text.encode() for text in control] + [b"<END>"]
        self.special_token_ids = list(range(256, len(self.tokens)))
        self.eos_token_id = len(self.tokens) - 1
        self.bos_token_id = None

    def __call__(self, data: bytes | str) -> list[int]:
        return list(data.encode() if isinstance(data, str) else data)


def walk(turn: TurnPlan, rng: random.Random, *, control: Sequence[str], endings: Sequence[str] = ()) -> str | None:
    """A random output under the plan's constraint; None if it does not come to an end. `control` are the vocabulary's control
    tokens."""
    assert turn.constraint is not None
    vocabulary = _Vocabulary(control)
    compiled = prepare(turn.constraint, preserved=vocabulary.control).compiled
    matcher = LLMatcher(LLTokenizer(TokenizerWrapper(vocabulary)), compiled, log_level=0)
    assert not matcher.is_error(), matcher.get_error()
    marks = [mark.encode() for mark in (*turn.preserved, *endings)] + [b'"', b"}", b"]", b"\n"]
    out, wanted = b"", b""
    for _ in range(MAX_WALK):
        if matcher.is_stopped() or (matcher.is_accepting() and rng.random() < 0.5):
            return out.decode("utf-8", "replace")
        allowed = np.flatnonzero(np.frombuffer(matcher.compute_logit_bias(), np.uint8)[: vocabulary.eos_token_id]).tolist()
        assert not matcher.is_error(), matcher.get_error()
        if not allowed:
            assert matcher.is_accepting()
            return out.decode("utf-8", "replace")
        specials = [token for token in allowed if token >= 256]
        if not wanted and rng.random() < 0.1:
            wanted = rng.choice(marks)
        if specials and (len(specials) == len(allowed) or rng.random() < 0.5):
            token, wanted = rng.choice(specials), b""
        elif wanted and wanted[0] in allowed:
            token, wanted = wanted[0], wanted[1:]
        else:
            shown = [token for token in allowed if 32 <= token < 127 or token == 10]
            token, wanted = rng.choice(shown or [token for token in allowed if token < 256]), b""
        matcher.consume_token(token)
        assert not matcher.is_error(), (out, matcher.get_error())
        out += vocabulary.tokens[token]
    return None


def check_walks(family: Family, *, control: bool, n: int = 3) -> None:
    """What the grammar of required calls makes up is read as calls of tools that are there, with arguments they take."""
    tools = {tool.name: tool for tool in family.tools}
    request = TurnRequest(tools=tuple(family.tools), choice="required", prompt=family.prompt)
    turn = family.format.plan(request)
    marks = (family.control or turn.preserved) if control else ()
    done = 0
    for seed in range(n):
        raw = walk(turn, random.Random(seed), control=marks, endings=family.endings)
        if raw is None:
            continue
        done += 1
        message = parse(turn, [raw])
        assert message.tool_calls and message.content is None, (raw, message)
        for call in message.tool_calls:
            value = json.loads(call.arguments)
            assert call.name in tools, (raw, call)
            jsonschema.validate(value, dict(tools[call.name].parameters) or {"type": "object", "maxProperties": 0})
        assert plain(parse(turn, list(raw))) == plain(message)
    assert done >= n // 2
