"""The jobs that a loaded model can be asked to do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from puna import __version__
from puna.config import ServerSettings
from puna.errors import InvalidRequest, NotSupported, PunaError, Unavailable
from puna.grammar.gbnf import token_names
from puna.grammar.process import Job
from puna.log import logger
from puna.mediafiles.loader import MediaLoader
from puna.service.adapters import AdapterScales
from puna.service.chat import ChatRenderer
from puna.service.controls import Controls
from puna.service.grammars import Preparer, ThreadPreparer
from puna.service.params import GenerationParams, plan
from puna.service.ports import Engine, Nobody, Observer, Stream, Tokenizer
from puna.service.prompts import token_of
from puna.service.running import Running
from puna.service.templates import Templates, read_templates
from puna.service.turns import Turn, Turns
from puna.types import Constraint, Generation, Media, ModelFacts

BUILD = f"puna-{__version__}"
"""What replies name as the software that made them."""


class Service:
    """One engine and the settings of the server around it."""

    def __init__(
        self,
        engine: Engine,
        settings: ServerSettings,
        observer: Observer | None = None,
        grammars: Preparer | None = None,
    ) -> None:
        """Without `grammars` constraints are prepared on threads."""
        self.engine = engine
        self.settings = settings
        self._observer = observer or Nobody()
        self.turns = Turns()
        """Of requests that supersede each other, by the caller's own key."""
        self.adapters = AdapterScales(lambda: self.facts)
        """How strongly each adapter counts for requests that name none."""
        self.controls = Controls()
        """Of answers that clients may act on while they are made."""
        self._draining = False
        self._grammars = grammars or ThreadPreparer()
        self.media = MediaLoader(settings)
        """Finds and decodes pictures and sounds."""
        self._templates: tuple[ModelFacts, Templates | NotSupported] | None = None

    @property
    def facts(self) -> ModelFacts:
        """Of the loaded model. Raises `Unavailable` while there is none."""
        facts = self.engine.facts
        if facts is not None and self.engine.state != "failed":
            return facts
        if self.engine.state == "failed":
            raise Unavailable(f"the model could not be loaded: {self.engine.failure}", retry_after=60)
        raise Unavailable("Loading model")

    @property
    def tokenizer(self) -> Tokenizer:
        """Of the loaded model. Raises `Unavailable` while there is none."""
        self.check_ready()
        return self.engine.tokenizer

    @property
    def model(self) -> str:
        """The model's public name: the configured alias, or its file's name without the ending."""
        return self.settings.alias or PurePath(self.facts.path).stem

    @property
    def chat(self) -> ChatRenderer:
        """Renders conversations with the configured template, else the model's own.

        Raises `NotSupported` if that template cannot be used. The first call takes a moment.
        """
        return self.templates.default

    @property
    def templates(self) -> Templates:
        """All the templates that conversations may be rendered with. Raises `NotSupported` like `chat`."""
        facts = self.facts
        if self._templates is None or self._templates[0] is not facts:
            self._templates = facts, read_templates(self.tokenizer, self.settings, facts)
        found = self._templates[1]
        if isinstance(found, NotSupported):
            raise found
        return found

    def check_ready(self) -> None:
        """Raise `Unavailable` unless requests can be taken, though perhaps only queued."""
        if self._draining:
            raise Unavailable("the server is shutting down", retry_after=5)
        _ = self.facts

    def check_embeds(self) -> ModelFacts:
        """The model's facts. Raises `NotSupported`, with what to do, where texts are not made into vectors."""
        self.check_ready()
        facts = self.facts
        if facts.ranks:
            raise NotSupported("this server ranks, it does not embed; start it with --pooling mean, cls, last or none to embed")
        if not facts.embeds:
            raise NotSupported(facts.why_no_vectors or "this server does not embed texts; start it with --embeddings")
        return facts

    def check_ranks(self) -> ModelFacts:
        """The model's facts. Raises `NotSupported`, with what to do, where pairs of texts are not scored."""
        self.check_ready()
        facts = self.facts
        if not facts.ranks:
            hint = "start it with --reranking and the file of a reranker"
            raise NotSupported(facts.why_no_vectors or f"this server does not rank documents; {hint}")
        return facts

    async def prepare_constraint(self, constraint: Constraint, preserved: Sequence[int] = ()) -> Constraint:
        """The constraint with what the engine needs of it; grammars may spell `preserved` tokens as texts.

        Raises `InvalidRequest` for one that cannot be enforced.
        """
        tokenizer = self.tokenizer
        names = token_names(constraint.source) if constraint.kind == "gbnf" else ()
        tokens = {name: id for name in names if (id := token_of(tokenizer, name)) is not None}
        texts = {tokenizer.piece(token, special=True).decode("utf-8", "replace"): token for token in preserved}
        prepared = await self._grammars.prepare(Job(constraint, tokens, texts))
        if prepared.warnings:
            logger.warning("a schema is not enforced as a whole: %s", "; ".join(prepared.warnings)[:1000])
        return prepared

    async def generate(
        self,
        prompts: Sequence[tuple[int, ...]],
        params: GenerationParams,
        *,
        every_token: bool = False,
        turn: Turn | None = None,
        media: Sequence[tuple[Media, ...]] = (),
    ) -> Running:
        """Admit every answer to every prompt, or none. A request whose `turn` is over already ends without beginning. `media` is
        what each prompt has in the place of its `MEDIA`; nothing where none has any.

        Raises `InvalidRequest` for more answers than could ever wait at once, `ContextExceeded`, `QueueFull` or
        `Unavailable`. The caller has to close what it gets.
        """
        self.check_ready()
        room = self.facts.n_slots + self.settings.max_queue
        if len(prompts) * params.n_tried > room:
            raise InvalidRequest(
                f"{len(prompts)} prompts with {params.n_tried} answers each are more than the {room} that this server can hold"
            )
        generations = plan(tuple(prompts), params, tuple(media))
        streams = [] if turn is not None and turn.over else await self._admit(generations, every_token=every_token)
        running = Running(generations, streams, self._observer)
        if turn is not None:
            turn.begin(running)
        return running

    async def _admit(self, generations: Iterable[Generation], *, every_token: bool) -> list[Stream]:
        streams: list[Stream] = []
        try:
            for generation in generations:
                stream = self.engine.generate(generation, every_token=every_token)
                streams.append(stream)
        except PunaError:
            await asyncio.gather(*(stream.aclose() for stream in streams))
            raise
        return streams

    async def warm(self) -> None:
        """Do in advance what the first request of a kind would have to wait for."""
        try:
            await self._grammars.warm()
        except PunaError as error:
            logger.warning("%s", error.message)

    async def aclose(self) -> None:
        """Give back what is held beside the engine."""
        self.media.close()
        await self._grammars.aclose()

    def drain(self) -> None:
        """Refuse new work from now on."""
        self._draining = True
