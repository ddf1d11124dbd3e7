"""From settings to what makes vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from puna import gguf
from puna.config import EngineSettings
from puna.engine.contexts import free_memory
from puna.engine.lanes import Lane
from puna.engine.media.reader import MediaReader
from puna.engine.pooling import Pooler
from puna.engine.pooling_choice import MOST_INPUTS, PACK, PoolingChoice, PoolingSize, choose_pooling
from puna.engine.recorder import Recorder
from puna.engine.sizing import SHORT_N_CTX
from puna.errors import StartupError
from puna.llama.control_vector import ControlVector
from puna.llama.lora import Lora
from puna.llama.model import Model
from puna.llama.pooled import PooledContext
from puna.llama.vocab import Vocab
from puna.pooling import Pooling
from puna.tuning import Tuning

MOST_STATES = 8
"""Inputs in a batch where each takes a running state of its own."""

OUTPUT = 4
"""Bytes that the engine takes for each entry of the vocabulary and token of a batch, wanted or not."""

LANE_PACK = 128
"""Tokens of a lane's batch: more make attention dearer, fewer everything else."""

LANE_MEMORY = 1 << 30
"""Bytes that all lanes may take."""

LEAST_PACK = 8
"""Tokens of a batch, however small the settings want them."""

Make = Callable[[int, int, int], PooledContext]
"""Makes a context for so many tokens in all, in a batch, and inputs. Raises `StartupError` for want of memory."""


def find_pooling(model: Model, settings: EngineSettings, *, generates: bool) -> PoolingChoice:
    """What is made of inputs. The file's header is only read when that matters."""
    wanted = not generates or settings.embeddings or settings.reranking
    tensors = gguf.read_header(settings.model).tensors if wanted else ()
    return choose_pooling(settings, model.metadata, tensors, n_labels=model.n_labels, generates=generates)


def pair_frame(vocab: Vocab) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The ids before, between and after two texts that are to be looked at together."""
    end = (vocab.eos if vocab.eos >= 0 else vocab.sep,) if vocab.add_eos else ()
    separator = (vocab.sep,) if vocab.add_sep else ()
    return (vocab.bos,) if vocab.add_bos else (), (*end, *separator), end


def make_pooler(
    make: Make,
    model: Model,
    settings: EngineSettings,
    limit: int,
    n_threads: int,
    loras: Sequence[Lora],
    recorder: Recorder,
    warn: Callable[[str], None],
    media: MediaReader | None = None,
) -> Pooler:
    """What makes vectors of inputs of up to `limit` tokens. Raises `StartupError` for want of memory."""
    first = max(LEAST_PACK, min(PACK, settings.n_ubatch, settings.n_batch))
    # the engine ends the process for a context of more sequences than a batch has tokens
    n_inputs = min(first, MOST_INPUTS if model.can_cut or model.n_swa else MOST_STATES)
    trial = make(first, first, n_inputs)
    splits, has_memory = trial.can_continue, trial.has_memory
    trial.close()

    def of_length(length: int) -> Lane:
        n_batch = first if splits else length
        outputs = OUTPUT * model.vocab.n_tokens * n_batch
        if outputs > free_memory():
            raise StartupError(f"the engine would want {outputs / 1e6:,.0f} MB for {n_batch} tokens at once")
        return Lane(make(length, n_batch, n_inputs), length, n_batch, loras)

    pooler = Pooler(
        of_length,
        PoolingSize(first if has_memory else min(first, LANE_PACK), first, max(limit, first), n_inputs),
        # what has memory takes too much of it
        n_lanes=1 if has_memory else max(1, min(n_threads, LANE_MEMORY // (OUTPUT * model.vocab.n_tokens * first))),
        n_threads=n_threads,
        recorder=recorder,
        warn=warn,
        media=media,
    )
    pooler.warm_up()
    return pooler


def make_pooled(
    model: Model,
    settings: EngineSettings,
    pooling: Pooling,
    tuning: Tuning,
    vector: ControlVector | None,
    n_ctx: int,
    n_ubatch: int,
    n_inputs: int,
) -> PooledContext:
    """A context as the settings want it. Raises `StartupError` for want of memory."""
    context = PooledContext(
        model,
        pooling=pooling,
        n_ctx=n_ctx,
        n_ubatch=n_ubatch,
        n_seq_max=n_inputs,
        n_threads=tuning.n_threads_batch,
        flash_attention=_flash_attention(model, settings, tuning, n_ctx),
        attention=settings.attention,
        rope_scaling=settings.rope_scaling,
        rope_freq_base=settings.rope_freq_base,
        rope_freq_scale=settings.rope_freq_scale,
    )
    if vector is not None:
        context.use_control_vector(vector)
    return context


def _flash_attention(model: Model, settings: EngineSettings, tuning: Tuning, n_ctx: int) -> bool:
    """Whether to use flash attention: in a decoder as for text; in an encoder always, since without it each head takes a
    matrix of all tokens by all tokens, and other servers round alike."""
    if model.has_decoder:
        return tuning.flash_short if n_ctx <= SHORT_N_CTX else tuning.flash_long
    return settings.flash_attention != "off"
