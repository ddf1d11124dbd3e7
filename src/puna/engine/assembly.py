"""From settings to a running engine: load the model, choose sizes, put the parts together."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from puna import gguf, machine
from puna.config import EngineSettings
from puna.engine import sizing, tuner
from puna.engine.adapter_files import (
    adapter_facts,
    check_adapters,
    check_numbers,
    initial_scales,
    known_adapters,
    load_control_vector,
)
from puna.engine.arena import Arena
from puna.engine.budget import StepBudget
from puna.engine.constraint import ConstraintFactory
from puna.engine.contexts import ContextMaker, free_memory
from puna.engine.disk.folder import StateFolder
from puna.engine.disk.identity import identify
from puna.engine.disk.jobs import FileThread
from puna.engine.disk.statefile import Identity
from puna.engine.disk.tier import DiskTier
from puna.engine.draft_assembly import Drafts, load_drafts, make_drafting
from puna.engine.loop import Engine
from puna.engine.media.assembly import load_media
from puna.engine.media.reader import MediaReader
from puna.engine.memory import SplitMemory, UnifiedMemory
from puna.engine.pooling_assembly import find_pooling, make_pooled, make_pooler, pair_frame
from puna.engine.pooling_choice import PoolingChoice, longest_input
from puna.engine.recorder import Recorder
from puna.engine.runner import Runner
from puna.engine.scheduler import Scheduler
from puna.engine.slots import SlotBoard
from puna.engine.tiers import HostTier
from puna.engine.workload import Workload
from puna.errors import StartupError
from puna.llama import library
from puna.llama.batch import Batch
from puna.llama.context import Context
from puna.llama.lora import Lora
from puna.llama.model import Model
from puna.llama.state import StateShape
from puna.tuning import Tuning
from puna.types import AdapterFacts, ModelFacts

LEAST_PENDING = 64 << 20
"""Bytes that may wait to be written to disk on the smallest machine."""

SCAN_WAIT = 3.0
"""Seconds that a start may wait to know what is on disk."""


def assemble(
    settings: EngineSettings,
    *,
    safe_mode: bool,
    recorder: Recorder,
    progress: Callable[[float], None],
    warn: Callable[[str], None],
    known: Tuning | None = None,
) -> tuple[Workload, ModelFacts]:
    """Load and build everything. Raises `StartupError` with a reason for the user.

    `known` is how an earlier worker of the same server computed the model.
    """
    library.start(verbose=settings.verbose)
    check_adapters(settings)
    model = Model(
        settings.model,
        n_gpu_layers=settings.n_gpu_layers,
        mmap=_choose_mmap(settings, settings.model),
        mlock=settings.mlock,
        repack=settings.repack and not safe_mode,
        progress=progress,
    )
    drafts = load_drafts(
        settings, model, mmap=_choose_mmap(settings, settings.draft_model or settings.model), safe_mode=safe_mode
    )
    loras = [Lora(model, file.path) for file in settings.lora]
    vector = load_control_vector(settings, model)
    tuning = tuner.rules(settings, tuner.situation(model))
    generator, size, media = None, None, None
    if model.has_decoder:
        media = load_media(settings, model, tuning.n_threads_batch, warn)
        constraints = ConstraintFactory(model.vocab)
        constraints.warm()
        maker = ContextMaker(model, settings, vector)
        recorder.record("calibrate", ())  # computing in every way there is may be more than the engine survives
        tuning = tuner.tune(model, settings, maker, safe_mode=safe_mode, known=known, warn=warn)
        recorder.record("load", ())
        size = _choose_size(model, settings, maker, tuning)
        generator = _make_generator(maker, tuning, size, constraints, loras, media, drafts, recorder, warn)
    choice = find_pooling(model, settings, generates=model.has_decoder)
    if choice.reason:
        warn(choice.reason)
    facts = _facts(model, settings, tuning, size, choice, adapter_facts(loras, initial_scales(settings)), safe_mode=safe_mode)
    if drafts is not None:
        facts = replace(facts, draft_model=drafts.model.description)
    pooler = None
    if choice.pooling is not None:
        make = partial(make_pooled, model, settings, choice.pooling, tuning, vector)
        pooler = make_pooler(make, model, settings, facts.n_ctx_pooled, tuning.n_threads_batch, loras, recorder, warn, media)
    if media is not None:
        pooled = pooler is not None and pooler.takes_media
        facts = replace(facts, media=replace(media.facts, pooled=pooled))
    return Workload(generator, pooler), facts


def _make_generator(
    maker: ContextMaker,
    tuning: Tuning,
    size: sizing.Size,
    constraints: ConstraintFactory,
    loras: list[Lora],
    media: MediaReader | None,
    drafts: Drafts | None,
    recorder: Recorder,
    warn: Callable[[str], None],
) -> Engine:
    """What makes text."""
    model, settings, vector = maker.model, maker.settings, maker.vector
    context = maker.make(tuning, size.first, size.n_slots)
    maker.shape = shape = warm_up(context)
    make = partial(maker.make, tuning)
    scales = initial_scales(settings)
    check_numbers(context, [(lora, scale) for lora, scale in zip(loras, scales, strict=True) if scale], vector)
    memory = UnifiedMemory(context) if tuning.layout == "unified" else SplitMemory(context)
    host = HostTier(sizing.choose_cache(settings.cache_ram, free_memory()), can_cut=model.can_cut, shape=shape)
    files = FileThread()
    identity = _identify(model, settings, tuning, size)
    disk = _open_disk(settings, identity, files, host, can_cut=model.can_cut, warn=warn)
    return Engine(
        vocab=model.vocab,
        arena=Arena(size, make, context, memory, Runner(context, settings.n_batch, loras), warn),
        scheduler=Scheduler(
            size.n_slots,
            can_cut=model.can_cut,
            share_at_least=settings.slots_wait_share,
            slots=SlotBoard(size.n_slots, settings.slot_similarity),
        ),
        budget=StepBudget(n_ubatch=settings.n_ubatch),
        host=host,
        constraints=constraints,
        adapters=known_adapters(loras, vector),
        drafting=make_drafting(drafts, settings, tuning, size, model, recorder, warn),
        files=files,
        identity=identity,
        disk=disk,
        media=media,
        n_threads=tuning.n_threads_batch,
        recorder=recorder,
        warn=warn,
    )


def _choose_mmap(settings: EngineSettings, path: str) -> bool:
    try:
        n_bytes = gguf.total_bytes(path)
    except OSError:
        return True  # loading says what is wrong
    return sizing.choose_mmap(settings.mmap, n_bytes=n_bytes, free=free_memory(), large_pages=machine.has_large_pages())


def _identify(model: Model, settings: EngineSettings, tuning: Tuning, size: sizing.Size) -> Identity:
    """What states of this model in this context belong to. Raises `StartupError` if the file cannot be read any more."""
    context: dict[str, object] = {
        "engine": library.version(),
        "keys": settings.cache_type_k,
        "values": settings.cache_type_v,
        "RoPE scaling": settings.rope_scaling,
        "RoPE base": settings.rope_freq_base,
        "RoPE scale": settings.rope_freq_scale,
    }
    if not model.can_cut:  # such states are taken as they are, so the context has to be of the same make
        context |= {"layout": tuning.layout, "slots": size.n_slots}
        context |= {"flash attention": str(_flash_attention(tuning, size.n_ctx))}
    try:
        return identify(settings.model, model.metadata, context)
    except OSError as error:
        raise StartupError(f"{settings.model} cannot be read: {error.strerror or error}") from error


def _open_disk(
    settings: EngineSettings,
    identity: Identity,
    files: FileThread,
    host: HostTier,
    *,
    can_cut: bool,
    warn: Callable[[str], None],
) -> DiskTier | None:
    """The tier below host memory, if there is to be one."""
    if not settings.cache_dir:
        return None
    folder = StateFolder(Path(settings.cache_dir), settings.cache_disk)
    disk = DiskTier(folder, identity, files, can_cut=can_cut, most_pending=max(host.capacity // 4, LEAST_PENDING), warn=warn)
    disk.start(SCAN_WAIT)
    host.on_evict = disk.store
    return disk


def warm_up(context: Context) -> StateShape | None:
    """Decode two tokens and forget them: pages weights in, and shows an illegal instruction before any client waits.

    How saved states are laid out, if that can be told.
    """
    batch = Batch(2)
    batch.add([0, 0], 0, 0, n_logits=1)
    context.decode(batch)
    shape = context.learn_shape(0)
    context.drop(0)
    return shape


def _flash_attention(tuning: Tuning, n_ctx: int) -> bool:
    """Whether the largest context uses flash attention."""
    return tuning.flash_short if n_ctx <= sizing.SHORT_N_CTX else tuning.flash_long


def _choose_size(model: Model, settings: EngineSettings, maker: ContextMaker, tuning: Tuning) -> sizing.Size:
    return sizing.choose_size(
        n_ctx=settings.n_ctx,
        n_slots=settings.n_slots,
        n_ctx_train=model.n_ctx_train,
        cell=maker.cell_bytes,
        free=free_memory(),
        fixed=not model.can_cut and tuning.layout == "split",
        short=tuning.flash_short != tuning.flash_long,
    )


def _facts(
    model: Model,
    settings: EngineSettings,
    tuning: Tuning,
    size: sizing.Size | None,
    choice: PoolingChoice,
    adapters: tuple[AdapterFacts, ...],
    *,
    safe_mode: bool,
) -> ModelFacts:
    """What the server gets to know. Without a `size` there is no text to make, and one slot stands for all work."""
    longest = longest_input(settings, n_ctx_train=model.n_ctx_train, generates=size is not None)
    n_ctx = size.n_ctx if size is not None else longest
    begin, middle, end = pair_frame(model.vocab)
    return ModelFacts(
        path=settings.model,
        description=model.description,
        architecture=model.metadata.get("general.architecture", "unknown"),
        n_params=model.n_params,
        n_bytes=model.n_bytes,
        n_vocab=model.vocab.n_tokens,
        vocab_type=model.vocab.type,
        n_embd=model.n_embd,
        n_layer=model.n_layer,
        n_ctx_train=model.n_ctx_train,
        n_ctx=n_ctx,
        n_slots=size.n_slots if size is not None else 1,
        layout=tuning.layout,
        flash_attention=_flash_attention(tuning, n_ctx),
        n_threads=tuning.n_threads,
        n_threads_batch=tuning.n_threads_batch,
        chat_template=model.chat_template,
        chat_template_variants=model.chat_template_variants,
        metadata={key: value for key, value in model.metadata.items() if not key.startswith("tokenizer.chat_template")},
        can_cut=model.can_cut,
        can_draft=not model.runs,
        has_decoder=size is not None,
        engine=library.describe(),
        safe_mode=safe_mode,
        n_batch=settings.n_batch,
        adapters=adapters,
        tuning=tuning if size is not None else None,
        pooling=choice.pooling,
        why_no_vectors=choice.reason,
        n_embd_out=model.n_labels if choice.pooling == "rank" else model.n_embd_out,
        n_ctx_pooled=longest,
        rerank_template=model.rerank_template,
        pair_begin=begin,
        pair_middle=middle,
        pair_end=end,
    )
