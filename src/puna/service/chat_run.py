"""A chat turn from its conversation to its answers: the one way in which every dialect gets one.

`prepare_turn` does all that can be wrong with a request, `start_turn` admits it, and the `ChatRun` brings what comes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from puna.chat import Rendered
from puna.chat.events import Event
from puna.chat.formats.plan import Format, Parser, TurnPlan, TurnRequest
from puna.errors import InvalidRequest
from puna.outline import Outline, Part, as_constraint
from puna.service.answers import collect
from puna.service.chat import ChatRenderer, Message
from puna.service.chat_answers import BothWays, ChatAnswer
from puna.service.chat_turn import ChatTurn, ReasoningOptions
from puna.service.media import Mark, mark_media, shown
from puna.service.naming import naming
from puna.service.params import GenerationParams
from puna.service.ports import Tokenizer
from puna.service.preserved import preserving
from puna.service.prompts import token_of
from puna.service.ranking import choose_best
from puna.service.running import Running
from puna.service.service import Service
from puna.types import Chunk, Constraint, Media, Thinking

Step = tuple[int, tuple[Event, ...], Chunk]
"""An answer's index, what its next chunk made certain, and that chunk. Tokens, probabilities and figures are the chunk's;
its text is the raw output, which callers have no use for."""


class PreparedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that only needs to be admitted."""

    prompt: tuple[int, ...]
    """Token ids, and `MEDIA`."""
    media: tuple[Media, ...]
    """What stands there."""
    format: str
    parser: Callable[[], Parser]
    """Makes the parser of one answer."""
    opened: str
    """The end of the prompt, if it opens the thinking."""
    thinks: bool
    """Whether answers begin inside of it."""
    params: GenerationParams
    """With the whole output's constraint, and all tokens that are shown."""
    own_stops: frozenset[str]
    """Of the stop strings in `params` those that are the format's."""
    constraint_field: str | None
    """The field that a complaint about the constraint should name."""
    turn: ChatTurn


class ChatRun:
    """The answers of a turn as they come: an async iterator of batches of steps, one batch for each engine step.

    Ends when every answer has ended; raises the first error of any of them. Close it in any case.
    """

    def __init__(self, prepared: PreparedTurn, running: Running, tokenizer: Tokenizer) -> None:
        self.prepared = prepared
        self.running = running
        self.tokenizer = tokenizer
        """The vocabulary as this turn's output shows it."""
        self.answers = [
            ChatAnswer(
                index=index,
                generation=generation,
                parser=prepared.parser(),
                thinks=prepared.thinks,
                own_stops=prepared.own_stops,
            )
            for index, generation in enumerate(running.generations)
        ]
        """All of them, as far as they have come."""

    def __aiter__(self) -> ChatRun:
        return self

    async def __anext__(self) -> tuple[Step, ...]:
        batch = await self.running.__anext__()
        return tuple((index, *self.answers[index].read(chunk)) for index, chunk in batch)

    async def collect(self) -> list[ChatAnswer]:
        """Wait for the end; the answers that are given to the caller, best first where more were tried."""
        try:
            async for _ in self:
                pass
        finally:
            await self.aclose()
        return choose_best(self.answers, self.prepared.params)

    def end_reasoning(self) -> bool:
        """Let the model think no further and answer. Whether that is possible: not for a turn that cannot think, or is over."""
        if self.prepared.params.thinking is None or not self.prepared.turn.reasoning.controlled:
            return False
        return self.running.end_thinking()

    async def aclose(self) -> None:
        """Stop whatever still runs. May be called more than once."""
        await self.running.aclose()


@dataclass(frozen=True)
class Written:
    """A turn's prompt."""

    chat: ChatRenderer
    rendered: Rendered
    prompt: tuple[int, ...]
    media: tuple[Media, ...]
    marks: tuple[Mark, ...]
    last: Message
    """The last message as the template was given it."""

    @property
    def text(self) -> str:
        """The prompt as people may see it."""
        return shown(self.rendered.text, self.marks)


async def render_turn(service: Service, turn: ChatTurn, *, load: bool = True) -> Written:
    """The prompt as text and as token ids, without anything generated. Without `load` nothing is known of its media."""
    conversation, settings = turn.conversation, service.settings
    # Tools that must not be called are not shown to the model, which might call them all the same.
    tools = () if turn.choice.mode == "none" else conversation.tools
    messages, marks = await mark_media(conversation.messages, service.media, service.facts.media, load=load)
    conversation = msgspec.structs.replace(
        conversation,
        messages=messages,
        tools=tools,
        required=turn.choice.mode == "required",
        parallel=turn.parallel,
    )
    chat = await service.templates.choose(conversation)
    told = chat.reasoning_variables(*_told(turn.reasoning))
    continues = conversation.continue_final_message
    if continues is None and not settings.prefill_assistant:
        continues = False
    rendered = await chat.render(
        msgspec.structs.replace(
            conversation,
            kwargs={**settings.chat_template_kwargs, **told, **conversation.kwargs},
            continue_final_message=continues,
        )
    )
    prompt, media = await chat.tokenize_marked(rendered, marks)
    return Written(chat, rendered, prompt, media, marks, messages[-1])


async def count_turn(service: Service, turn: ChatTurn) -> int:
    """How many tokens the prompt has. What pictures and sounds take is known once the engine has read them, so that is what it
    does then; the prompt stays in the cache for whoever asks it."""
    written = await render_turn(service, turn)
    if not written.media:
        return len(written.prompt)
    params = GenerationParams(max_tokens=0, lora=turn.params.lora)
    (answer,) = await collect(await service.generate([written.prompt], params, media=[written.media]))
    return answer.n_prompt


async def prepare_turn(service: Service, turn: ChatTurn) -> PreparedTurn:
    """Everything before the engine. Raises `InvalidRequest` that names the field, or `NotSupported`."""
    tools = turn.choice.among(turn.conversation.tools)
    params = turn.params
    written = await render_turn(service, turn)
    rendered, last = written.rendered, written.last
    answer = params.constraint
    if answer is not None and answer.triggers:
        if tools:
            reason = "a lazy grammar cannot be combined with tools that may be called"
            raise InvalidRequest(f"Field '{turn.answer_field}': {reason}", param=turn.answer_field)
        answer = None  # it is about the whole output, and stays with the parameters
    elif answer is not None:
        with naming(turn.answer_field):
            answer = await service.prepare_constraint(answer, params.preserved_tokens)
    asked = TurnRequest(
        tools=tools,
        choice=turn.choice.mode if tools else "none",
        parallel=turn.several_calls,
        prompt=rendered.text,
        continues=last.role == "assistant" and bool(last.text) and rendered.text.endswith(last.text),
        answer=answer,
        separate_reasoning=turn.reasoning.shown != "inline",
        budget=_budget(turn),
    )
    form = written.chat.format
    field = turn.tools_field if tools else turn.answer_field
    with naming(field):
        plan = form.plan(asked)
        if opened := _opened_by_prefill(plan, rendered.text, last):
            asked = msgspec.structs.replace(asked, prompt=opened, continues=False)
            plan = form.plan(asked)
    tokenizer = service.tokenizer
    # Control tokens alone: others are seen anyway, and a mark may be written with tokens that reach beyond it. A token that
    # ends the answer is no mark: where the grammar wants its text, other tokens have to spell it.
    ids = (token_of(tokenizer, text) for text in plan.preserved)
    shown = (id for id in ids if id is not None and not tokenizer.piece(id) and not tokenizer.is_eog(id))
    preserved = tuple(dict.fromkeys((*params.preserved_tokens, *shown)))
    constraint = plan.constraint or (params.constraint if answer is None else None)
    if answer is not None and constraint == as_constraint(Outline(Part(answer))):
        constraint = answer  # there is nothing else
    if constraint is not None:
        with naming(field):
            constraint = await service.prepare_constraint(constraint, preserved)
        constraint = _with_warnings(constraint, answer)
    return PreparedTurn(
        prompt=written.prompt,
        media=written.media,
        format=plan.format,
        parser=_reader(form, plan, asked, turn),
        opened=plan.forced_open,
        thinks=plan.thinking is not None and plan.thinking.open,
        params=msgspec.structs.replace(
            params,
            constraint=constraint,
            preserved_tokens=preserved,
            stop=tuple(dict.fromkeys((*params.stop, *plan.stop))),
            thinking=_thinking(plan, turn, tokenizer),
        ),
        own_stops=frozenset(plan.stop) - frozenset(params.stop),
        constraint_field=field,
        turn=turn,
    )


async def start_turn(service: Service, prepared: PreparedTurn, *, every_token: bool = False) -> ChatRun:
    """Admit every answer, or none. Raises what `Service.generate` raises. The caller has to close what it gets."""
    running = await service.generate([prepared.prompt], prepared.params, every_token=every_token, media=[prepared.media])
    return ChatRun(prepared, running, preserving(service.tokenizer, prepared.params.preserved_tokens))


def _opened_by_prefill(plan: TurnPlan, prompt: str, last: Message) -> str:
    """The prompt up to where it opens thoughts that the assistant's last message leaves open; empty where it does not."""
    if plan.thinking is None or last.role != "assistant" or not plan.thinking.begin:
        return ""
    begin, end = plan.thinking.begin, plan.thinking.end
    left_open = last.text.rfind(begin) > last.text.rfind(end) if last.text else bool(last.reasoning_content)
    at = prompt.rfind(begin)
    return prompt[: at + len(begin)] if left_open and at > prompt.rfind(end) else ""


def _told(options: ReasoningOptions) -> tuple[bool | None, str | None]:
    """Whether thinking is turned on or off, and the effort that the template is told."""
    if options.disabled:
        return False, None
    return options.enabled, options.effort if options.effort != "none" else None


def _budget(turn: ChatTurn) -> int:
    return 0 if turn.reasoning.disabled else turn.reasoning.budget


def _reader(form: Format, plan: TurnPlan, asked: TurnRequest, turn: ChatTurn) -> Callable[[], Parser]:
    """Makes parsers that tell apart what the caller wants told apart."""
    if not turn.parse_calls:
        asked = msgspec.structs.replace(asked, tools=(), choice="none", answer=None)
    elif turn.reasoning.shown != "both":
        return plan.parser
    read = form.plan(asked).parser
    if turn.reasoning.shown != "both":
        return read
    inline = form.plan(msgspec.structs.replace(asked, separate_reasoning=False)).parser
    return lambda: BothWays(read(), inline())


def _thinking(plan: TurnPlan, turn: ChatTurn, tokenizer: Tokenizer) -> Thinking | None:
    """What counts and ends the thinking; None where it cannot, or nobody will ask for it."""
    options, budget = turn.reasoning, _budget(turn)
    if plan.thinking is None or (budget < 0 and not options.controlled):
        return None
    thoughts = plan.thinking
    message = "" if options.disabled else options.message
    return Thinking(
        begin=thoughts.begin,
        end=thoughts.end,
        open=thoughts.open,
        budget=budget,
        close=_closing(thoughts.closing, tokenizer),
        message=tuple(tokenizer.tokenize(message, add_special=False, parse_special=False)) if message else (),
    )


def _closing(text: str, tokenizer: Tokenizer) -> tuple[int, ...]:
    """What ends thoughts as tokens; none of them ends the answer."""
    tokens = tokenizer.tokenize(text, add_special=False, parse_special=True)
    if any(map(tokenizer.is_eog, tokens)):
        tokens = tokenizer.tokenize(text, add_special=False, parse_special=False)
    return tuple(tokens)


def _with_warnings(constraint: Constraint, answer: Constraint | None) -> Constraint:
    """The whole output's constraint, with what of the answer's is not enforced."""
    warnings: Sequence[str] = answer.warnings if answer is not None else ()
    return msgspec.structs.replace(constraint, warnings=tuple(dict.fromkeys((*constraint.warnings, *warnings))))
