"""The models of a server with several of them: found in its settings, loaded and unloaded as one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

from puna import gguf
from puna.api.responses.store import ResponseStore
from puna.config import EngineSettings, Settings
from puna.errors import StartupError, Unavailable
from puna.log import logger
from puna.machine import free_memory
from puna.models.catalogue import Catalogue, Entry, Job
from puna.models.estimate import needed_bytes
from puna.models.pool import Pool
from puna.models.probe import jobs
from puna.server.served import ServedModel
from puna.service.ports import Stream, Tokenizer, Vectors
from puna.settings import Loaded, read_catalogue, variant
from puna.types import EngineStats, Generation, Media, ModelFacts, SlotAction, SlotOutcome, SlotState, SlotTask

SHARE = 0.75
"""Of the memory that is free at the start, what models may take unless told otherwise."""

_PART = "-of-"


def read_models(loaded: Loaded) -> Catalogue:
    """All models that flags, catalogue and folder name. Raises `StartupError` for one that was named and cannot be read."""
    settings = loaded.settings
    entries: list[Entry] = []
    default = ""
    if settings.engine.model:
        first = _entry(_named(settings), origin="-m", on_start=True)
        default = first.name
        entries.append(first)
    models = settings.models
    special: tuple[tuple[str, str, Job], ...] = (
        ("--fim-model", models.fim_model, "infill"),
        ("--embedding-model", models.embedding_model, "embedding"),
        ("--rerank-model", models.rerank_model, "rerank"),
    )
    for flag, path, job in special:
        if path:
            entries.append(_entry(_special(variant(loaded, ()), path, job), origin=flag, favoured=job, on_start=True))
    if models.catalogue:
        tables = read_catalogue(models.catalogue, loaded)
        entries += (_entry(one.settings, origin=one.origin, aliases=one.aliases, on_start=one.on_start) for one in tables)
    if models.models_dir:
        taken = {entry.settings.engine.model for entry in entries} | {entry.name for entry in entries}
        entries += _in_folder(models.models_dir, variant(loaded, ()), taken)
    if not entries:
        raise StartupError("no models: the folder has no GGUF file, and no flag names one")
    return Catalogue(entries, default=default or (entries[0].name if len(entries) == 1 else ""))


def budget(settings: Settings) -> int:
    """Bytes that models may take; 0 for no limit."""
    if settings.models.memory:
        return max(0, settings.models.memory)
    free = free_memory()
    return int(free * SHARE) if free is not None else 0


def _named(settings: Settings) -> Settings:
    """The settings with the model's public name in them."""
    name = settings.server.alias or Path(settings.engine.model).stem
    return replace(settings, server=replace(settings.server, alias=name))


def _special(settings: Settings, path: str, job: Job) -> Settings:
    engine = replace(settings.engine, model=path, embeddings=job == "embedding", reranking=job == "rerank")
    return _named(replace(settings, engine=engine, server=replace(settings.server, alias="")))


def _entry(
    settings: Settings, *, origin: str, aliases: tuple[str, ...] = (), favoured: Job | None = None, on_start: bool = False
) -> Entry:
    header = gguf.read_header(settings.engine.model)
    projector = _projector(settings.engine)
    able = jobs(header, settings.engine, projector)
    needed = needed_bytes(header, settings.engine) + (Path(projector).stat().st_size if projector else 0)
    if settings.engine.draft_model:
        needed += gguf.read_header(settings.engine.draft_model).needed_bytes
    return Entry(
        name=settings.server.alias,
        settings=settings,
        aliases=aliases,
        jobs=able | {favoured} if favoured else able,
        favoured=frozenset([favoured]) if favoured else frozenset(),
        origin=origin,
        needed=needed,
        on_start=on_start,
    )


def _projector(engine: EngineSettings) -> str:
    """The file with which a model takes pictures or sound; empty where there is none."""
    path = engine.mmproj or (gguf.find_projector(engine.model) if engine.mmproj_auto else "")
    return path if path and Path(path).is_file() else ""


def _in_folder(folder: str, settings: Settings, taken: set[str]) -> list[Entry]:
    """A model for each GGUF file in a folder and the folders in it; files that are none are left out, with a warning."""
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise StartupError(f"--models-dir: there is no folder {folder}")
    found: list[Entry] = []
    for path in sorted(root.rglob("*.gguf")):
        name = path.stem
        if name.startswith("mmproj") or (_PART in name and "00001" + _PART not in name):
            continue  # a projector belongs to a model beside it, and a later part to the first one
        if _PART in name:
            name = name.rpartition("-00001" + _PART)[0] or name
        if str(path) in taken or name in taken:
            continue
        taken.add(name)
        one = replace(settings, engine=replace(settings.engine, model=str(path)), server=replace(settings.server, alias=name))
        try:
            found.append(_entry(one, origin=str(path)))
        except StartupError as error:
            logger.warning("left out: %s", error.message)
    return found


class Fleet:
    """All models, in the place where a server with one has its engine: it lives and dies with them, and generates nothing
    itself."""

    facts: ModelFacts | None = None
    failure = ""
    restarts = 0
    stats = EngineStats()
    slots: tuple[SlotState, ...] = ()

    def __init__(self, catalogue: Catalogue, settings: Settings) -> None:
        limits = settings.models
        self.kept = ResponseStore()
        self.pool: Pool[ServedModel] = Pool(
            catalogue,
            lambda entry: ServedModel(entry, self.kept),
            most=limits.most,
            budget=budget(settings),
            sleep_after=limits.sleep_idle,
        )
        self._stopping = False

    @property
    def state(self) -> str:
        return "stopping" if self._stopping else "ready"

    @property
    def in_flight(self) -> int:
        """Requests of all models that were admitted and have not ended."""
        return sum(served.engine.in_flight for served in self._loaded())

    @property
    def tokenizer(self) -> Tokenizer:
        raise Unavailable("the request is about no model")

    def _loaded(self) -> list[ServedModel]:
        entries = self.pool.catalogue.entries
        return [served for entry in entries if (served := self.pool.loaded(entry)) is not None]

    async def start(self, on_loading: Callable[[float], None] | None = None) -> None:
        """Load what is to be there from the start. Raises `StartupError` for a model that a flag named."""
        for entry in self.pool.catalogue.entries:
            if not entry.on_start:
                continue
            try:
                await self.pool.load(entry)
            except Unavailable as error:
                if entry.origin.startswith("-"):
                    raise StartupError(error.message) from error
                logger.error("%s", error.message)
        names = ", ".join(entry.name for entry in self.pool.catalogue.entries)
        logger.info("models: %s", names)

    async def drain(self, timeout: float) -> int:
        """Admit nothing more, and wait for what runs; how many answers did not end in time."""
        self._stopping = True
        return sum(await asyncio.gather(*(served.engine.drain(timeout) for served in self._loaded())))

    async def stop(self) -> None:
        """End everything."""
        self._stopping = True
        await self.pool.close(0)

    def generate(self, generation: Generation, *, every_token: bool = False) -> Stream:
        raise Unavailable("the request is about no model")

    def embed(
        self,
        inputs: Sequence[Sequence[int]],
        *,
        lora: Sequence[tuple[int, float]] = (),
        media: Sequence[Sequence[Media]] = (),
    ) -> Vectors:
        raise Unavailable("the request is about no model")

    def slot_task(self, slot: int) -> SlotTask | None:
        return None

    async def act_on_slot(self, action: SlotAction, slot: int, path: str = "") -> SlotOutcome:
        raise Unavailable("the request is about no model")
