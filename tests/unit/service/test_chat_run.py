"""One service call for a chat turn, whatever the dialect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from functools import cache, partial
from typing import Any

import msgspec
import pytest

from puna.chat.events import MessageBuilder
from puna.chat.formats.plan import Parser, TurnPlan, TurnRequest
from puna.config import ServerSettings
from puna.errors import InvalidRequest
from puna.service.chat import CallArguments, CallBegin, Conversation, Event, Message, Reasoning, Text, Tool
from puna.service.chat_run import ChatRun, prepare_turn, render_turn, start_turn
from puna.service.chat_turn import ChatTurn, ReasoningOptions, ToolChoice
from puna.service.params import GenerationParams
from puna.service.service import Service
from puna.types import Constraint, StopType
from tests.chat_turns import CALL, CALLS, OTHER_CALL, RAW, SAID, TEMPLATE, THOUGHT, pieces, write
from tests.fakes import FakeEngine, Item, say

TOOLS = (
    Tool(name="get_weather", parameters={"type": "object", "properties": {"city": {"type": "string"}}}),
    Tool(name="now"),
)
CONVERSATION = Conversation(messages=(Message(role="user", content="How is the weather?"),), tools=TOOLS)
SHOWN: tuple[Any, ...] = ("apart", "inline", "both")


def turn(conversation: Conversation = CONVERSATION, params: GenerationParams | None = None, **fields: Any) -> ChatTurn:
    return ChatTurn(conversation=conversation, params=params or GenerationParams(), **fields)


@cache
def server(template: str) -> Service:
    """Reading a template takes a while."""
    return Service(FakeEngine(), ServerSettings(chat_template=template))


def service(script: Iterable[Item] = (), template: str = TEMPLATE) -> Service:
    original = server(template)
    assert original.chat.template.source == template  # read before it is copied
    served = copy(original)
    served.engine = FakeEngine(script=lambda _: script)
    return served


async def run(script: Iterable[Item], asked: ChatTurn) -> ChatRun:
    served = service(script)
    return await start_turn(served, await prepare_turn(served, asked))


async def both(script: list[Item], asked: ChatTurn) -> tuple[Message, list[Event]]:
    """The whole message, and the events that came on the way, which have to add up to it."""
    whole = await (await run(script, asked)).collect()
    streaming = await run(script, asked)
    events = [event async for batch in streaming for _, found, _ in batch for event in found]
    builder = MessageBuilder()
    builder.feed(events)
    assert plain(builder.message()) == plain(whole[0].message) == plain(streaming.answers[0].message)
    joined = {event.index: "" for event in events if isinstance(event, CallBegin)}
    for event in events:
        if isinstance(event, CallArguments):
            joined[event.index] += event.text
    assert [joined[index] for index in range(len(joined))] == [call.arguments for call in whole[0].message.tool_calls]
    return whole[0].message, events


def plain(message: Message) -> tuple[Any, ...]:
    return message.reasoning_content, message.content, [(call.name, call.arguments) for call in message.tool_calls]


def _same(script: Iterable[Item], _number: int) -> Iterable[Item]:
    return script


@pytest.mark.parametrize("shown", SHOWN)
async def test_the_message_is_the_same_at_every_split(shown: Any) -> None:
    asked = turn(reasoning=ReasoningOptions(shown=shown))
    tagged = f"<think>\n{THOUGHT}\n</think>\n\n{SAID}"
    expected = (None if shown == "inline" else THOUGHT, SAID if shown == "apart" else tagged, CALLS)
    served = service()
    prepared = await prepare_turn(served, asked)
    for cut in range(len(RAW)):
        script = write(pieces(RAW, cut, cut + 5))
        served.engine = FakeEngine(script=partial(_same, script))
        answers = await (await start_turn(served, prepared)).collect()
        assert plain(answers[0].message) == expected, cut
    message, _ = await both(write(RAW), asked)
    assert plain(message) == expected


@pytest.mark.parametrize("stop_type", ["limit", "word", "eos"])
async def test_wherever_it_ends_events_add_up_to_the_message(stop_type: StopType) -> None:
    for end in range(0, len(RAW), 5):
        message, _ = await both(write(RAW[:end], stop_type), turn())
        if stop_type != "eos":
            assert "<" not in message.text and "<" not in (message.reasoning_content or "")


async def test_calls_without_arguments_have_an_empty_object() -> None:
    bare = '<tool_call>\n{"name": "now"}\n</tool_call>'
    for text in (bare, bare + bare, OTHER_CALL + bare + CALL, "Hm. " + bare):
        message, _ = await both(write(text), turn())
        assert [call.arguments for call in message.tool_calls if call.name == "now"] == ["{}"] * text.count('"now"')
        await both(write([text]), turn())


@pytest.mark.parametrize(
    "text, stop_type, stopping_word, finish",
    [
        (SAID, "eos", "", "stop"),
        (SAID, "word", "!", "stop"),
        (SAID, "limit", "", "length"),
        (RAW, "eos", "", "tool_calls"),
        (RAW, "word", "!", "tool_calls"),
        (RAW[:-20], "limit", "", "length"),
        (RAW[:-20], "word", "!", "tool_calls"),
        (RAW[:-15], "word", "!", "stop"),
        (RAW[: RAW.index("rich")], "word", "!", "stop"),
    ],
)
async def test_why_it_ended(text: str, stop_type: StopType, stopping_word: str, finish: str) -> None:
    asked = turn(params=GenerationParams(stop=("!",)))
    (answer,) = await (await run(write([text], stop_type, stopping_word=stopping_word), asked)).collect()
    assert answer.finish == finish and answer.stopping_word == stopping_word


class Stopping:
    """A format with a stop string of its own, and marks of which one is a control token that has to be seen, and one the end."""

    name = "stopping"

    def plan(self, request: TurnRequest) -> TurnPlan:
        marks = ("<|im_start|>", "<|unknown|>", ">", "<|im_end|>")
        return TurnPlan(format=self.name, parser=AllText, stop=("<|call|>", "!"), preserved=marks)


class AllText:
    def feed(self, text: str) -> list[Event]:
        return [Text(text)]

    def finish(self, *, cut: bool = False) -> list[Event]:
        return [Text("(cut)" if cut else "(end)")]


async def test_a_formats_own_stop_string_is_the_turns_natural_end(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    for word in ("<|call|>", "!"):
        served = service(write(["Hi"], "word", stopping_word=word))
        monkeypatch.setitem(vars(served.chat), "format", Stopping())
        prepared = await prepare_turn(served, turn(params=GenerationParams(stop=("!",)), choice=ToolChoice("none")))
        assert prepared.params.stop == ("!", "<|call|>") and len(prepared.params.preserved_tokens) == 1
        (answer,) = await (await start_turn(served, prepared)).collect()
        found[word] = (answer.stop_type, answer.stopping_word, answer.message.content)
    assert found == {"<|call|>": ("eos", "", "Hi(end)"), "!": ("word", "!", "Hi(cut)")}


async def test_reasoning_is_counted_by_its_share_of_the_text() -> None:
    n_tokens = len(RAW.encode())
    (answer,) = await (await run(write(RAW), turn())).collect()
    assert len(THOUGHT.encode()) <= answer.n_reasoning <= RAW.encode().index(SAID.encode())
    (answer,) = await (await run(write([RAW]), turn())).collect()
    assert 0 < answer.n_reasoning < n_tokens == answer.n_predicted
    (answer,) = await (await run(write(SAID), turn())).collect()
    assert answer.n_reasoning == 0


async def test_thinking_that_the_prompt_opens() -> None:
    opens = TEMPLATE.replace("<|im_start|>assistant\n{%", "<|im_start|>assistant\n<think>\n{%")
    served = service(write(f"{THOUGHT}\n</think>\n\n{SAID}"), opens)
    prepared = await prepare_turn(served, turn())
    assert prepared.opened == "<think>\n"
    assert prepared.params.thinking is not None and prepared.params.thinking.open
    (answer,) = await (await start_turn(served, prepared)).collect()
    assert plain(answer.message) == (THOUGHT, SAID, []) and answer.n_reasoning > len(THOUGHT)


@pytest.mark.parametrize(
    "content, reasoning, opened",
    [
        ("<think>\nI w", None, True),
        ("", "I w", True),
        (None, "I w", True),
        ("<think>I w</think>Hm", None, False),
        ("Hm", "I w", False),
        ("Hm", None, False),
    ],
)
async def test_thoughts_that_a_prefill_leaves_open_go_on(content: str | None, reasoning: str | None, opened: bool) -> None:
    prefill = Message(role="assistant", content=content, reasoning_content=reasoning)
    asked = turn(msgspec.structs.replace(CONVERSATION, messages=(*CONVERSATION.messages, prefill)))
    rest = "onder.\n</think>\n\nYes" if opened else ", yes"
    served = service(write(rest))
    prepared = await prepare_turn(served, asked)
    assert prepared.thinks is opened
    answer = await (await start_turn(served, prepared)).collect()
    assert plain(answer[0].message) == (("onder.", "Yes", []) if opened else (None, ", yes", []))


async def test_an_answer_that_a_prefill_begins_goes_on_as_it_is_written() -> None:
    prefill = Message(role="assistant", content="Hm")
    asked = turn(msgspec.structs.replace(CONVERSATION, messages=(*CONVERSATION.messages, prefill)))
    served = service(write(" <think> is a tag"))
    (answer,) = await (await start_turn(served, await prepare_turn(served, asked))).collect()
    assert plain(answer.message) == (None, " <think> is a tag", [])


async def test_best_answers_first() -> None:
    scripts: list[list[Item]] = [say("bad", probs=True, logprob=-2.0), say("good", probs=True, logprob=-0.1)]
    served = service()
    served.engine = FakeEngine(script=lambda number: scripts[number])
    asked = turn(params=GenerationParams(n=1, best_of=2))
    answers = await (await start_turn(served, await prepare_turn(served, asked))).collect()
    assert [answer.message.content for answer in answers] == ["good"]


async def test_an_error_ends_all() -> None:
    running = await run([*write(["a"])[:-1], ValueError("no")], turn())
    with pytest.raises(ValueError, match="no"):
        await running.collect()


async def test_counting_needs_no_engine() -> None:
    served = service()
    written = await render_turn(served, turn())
    rendered, tokens = written.rendered, written.prompt
    assert "get_weather" in rendered.text and len(tokens) > 20
    assert tokens == (await prepare_turn(served, turn())).prompt
    without = await render_turn(served, turn(choice=ToolChoice("none")))
    assert "get_weather" not in without.text and len(without.prompt) < len(tokens)


@pytest.mark.parametrize(
    "choice, names",
    [
        (ToolChoice(), ["get_weather", "now"]),
        (ToolChoice("required"), ["get_weather", "now"]),
        (ToolChoice("required", ("now",)), ["now"]),
        (ToolChoice("auto", ("now",)), ["now"]),
        (ToolChoice("auto", ()), []),
        (ToolChoice("none"), []),
    ],
)
def test_which_tools_may_be_called(choice: ToolChoice, names: Sequence[str]) -> None:
    assert [tool.name for tool in choice.among(TOOLS)] == names


@pytest.mark.parametrize("choice", [ToolChoice("required", ("x",)), ToolChoice("auto", ("x",)), ToolChoice("required", ())])
def test_tools_that_there_are_not(choice: ToolChoice) -> None:
    with pytest.raises(InvalidRequest, match="tool_choice"):
        choice.among(TOOLS)
    with pytest.raises(InvalidRequest, match="there are no tools"):
        ToolChoice("required").among(())


async def test_a_constraint_without_anything_else_stays_as_it_is() -> None:
    served = service(template="{{ messages[0].content }}")
    asked = turn(msgspec.structs.replace(CONVERSATION, tools=()), GenerationParams(constraint=Constraint("regex", "a+")))
    prepared = await prepare_turn(served, asked)
    assert prepared.params.constraint is not None and prepared.params.thinking is None
    assert (prepared.params.constraint.kind, prepared.params.constraint.source) == ("regex", "a+")
    lazy = msgspec.structs.replace(asked.params, constraint=Constraint("regex", "a+", triggers=()))
    assert (await prepare_turn(served, msgspec.structs.replace(asked, params=lazy))).params.constraint is not None


def test_parsers_meet_the_contract() -> None:
    parser: Parser = AllText()
    assert isinstance(parser.feed("x")[0], Text) and not isinstance(parser.finish()[0], Reasoning)


async def test_a_grammar_may_name_tokens_beside_thoughts_and_tools() -> None:
    grammar = Constraint("gbnf", 'root ::= <|im_end|> | <[65]> "b"')
    for tools in (TOOLS, ()):
        asked = turn(msgspec.structs.replace(CONVERSATION, tools=tools), GenerationParams(constraint=grammar))
        constraint = (await prepare_turn(service(), asked)).params.constraint
        assert constraint is not None and "65" in constraint.compiled


async def test_the_model_is_told_whether_and_how_often_it_has_to_call() -> None:
    written = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    served = service(template=written + "{% if tool_choice is defined %}{{ tool_choice }}{% endif %}")
    for choice, parallel, said in [
        (ToolChoice("auto"), True, ["when it helps", "may follow each other"]),
        (ToolChoice("required"), False, ["Answer by calling", "one call at a time", "\nrequired"]),
        (ToolChoice("none"), True, []),
    ]:
        rendered = (await render_turn(served, turn(choice=choice, parallel=parallel))).rendered
        every = ("when it helps", "may follow each other", "Answer by calling", "one call at a time", "\nrequired")
        assert [text for text in every if text in rendered.text] == said
