"""From settings to what makes vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from puna import gguf
from puna.config import EngineSettings
from puna.engine.pooling import MOST_INPUTS, Pooler, PoolingSize
from puna.engine.pooling_choice import PACK, PoolingChoice, choose_pooling
from puna.engine.recorder import Recorder
from puna.engine.sizing import SHORT_N_CTX
from puna.llama.control_vector import ControlVector
from puna.llama.lora import Lora
from puna.llama.model import Model
from puna.llama.pooled import PooledContext
from puna.llama.vocab import Vocab
from puna.pooling import Pooling
from puna.tuning import Tuning

MOST_STATES = 8
"""Inputs in a batch where each takes a running state of its own."""

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
    loras: Sequence[Lora],
    recorder: Recorder,
    warn: Callable[[str], None],
) -> Pooler:
    """What makes vectors of inputs of up to `limit` tokens. Raises `StartupError` for want of memory."""
    pack = max(LEAST_PACK, min(PACK, settings.n_ubatch, settings.n_batch))
    # the engine ends the process for a context of more sequences than a batch has tokens
    n_inputs = min(pack, MOST_INPUTS if model.can_cut or model.n_swa else MOST_STATES)
    first = make(pack, pack, n_inputs)
    splits = first.can_continue
    first.close()

    def of_length(length: int) -> PooledContext:
        return make(length, pack if splits else length, n_inputs)

    pooler = Pooler(of_length, PoolingSize(pack, max(limit, pack), n_inputs), loras, recorder=recorder, warn=warn)
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
