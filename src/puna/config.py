"""The settings of a server and of an engine, as plain values.

Where they come from (defaults, a file, the environment, flags) is `puna.settings`' business.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from puna.speculation import SpecType


class ScaledFile(msgspec.Struct, frozen=True, array_like=True):
    """A file and how strongly what is in it counts."""

    path: str
    scale: float = 1.0


class EngineSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker needs to know. 0, -1 or `auto` mean: the worker finds a value that suits model and machine."""

    model: str
    """Path of a GGUF file."""
    n_ctx: int = 0
    """Most tokens of one sequence; 0 for the model's own limit, made smaller to fit memory."""
    n_slots: int = 0
    """Sequences that run at once; 0 for a number that memory and model size allow."""
    n_batch: int = 2048
    """Most tokens in one decode call."""
    n_ubatch: int = 512
    """Most tokens the engine computes at once."""
    n_threads: int = 0
    """Threads for decode; 0 for the cores this process may use."""
    n_threads_batch: int = 0
    """Threads for prefill; 0 for the same as `n_threads`."""
    n_gpu_layers: int = -1
    """Layers on an accelerator; -1 for all, where the build has one."""
    flash_attention: Literal["auto", "on", "off"] = "auto"
    layout: Literal["auto", "unified", "split"] = "auto"
    """One cell pool for all sequences, or one stream each."""
    cache_type_k: str = "f16"
    cache_type_v: str = "f16"
    cache_ram: int = -1
    """Bytes of host memory for resting prompts; -1 for a share of the machine's memory, 0 for none."""
    cache_dir: str = ""
    """Folder for prompts that no longer fit in host memory; empty for none."""
    cache_disk: int = 8 * 1024**3
    """Most bytes that the files in that folder may take together."""
    slot_similarity: float = 0.1
    """The share of a prompt that a slot must have held to be preferred for it; 0 for no preference."""
    mmap: bool | None = None
    """Whether the model file is mapped instead of read; None for what suits the machine."""
    mlock: bool = False
    repack: bool = True
    """Whether weights may be repacked for the CPU (`use_extra_bufts`)."""
    rope_scaling: Literal["auto", "none", "linear", "yarn"] = "auto"
    rope_freq_base: float = 0.0
    rope_freq_scale: float = 0.0
    threads_poll: int = 1000
    """How long OpenMP threads spin before they sleep (GOMP_SPINCOUNT)."""
    lora: tuple[ScaledFile, ...] = ()
    """Adapters, by id."""
    lora_init_without_apply: bool = False
    """Whether the adapters' scales are 0 at first."""
    control_vectors: tuple[ScaledFile, ...] = ()
    """Files of directions that are added to what every layer says; they act together."""
    control_vector_layers: tuple[int, int] = (0, 0)
    """First and last layer that they act on; from 1, 0 and less for the model's first and last."""
    slots_wait_share: int = 32
    """Shortest shared prefix, in tokens, for which a request waits for another one that is computing it."""
    calibrate: bool = True
    """Whether what was left open is measured when a model is loaded for the first time."""
    draft_adaptive: bool = True
    """Whether drafts are only as long as they pay, instead of as long as they may be."""
    draft_model: str = ""
    """Path of a smaller model that guesses ahead; empty for none."""
    draft_n_ctx: int = 0
    """Tokens of the longest sequence that it guesses for; 0 for as many as a sequence may have."""
    draft_n_threads: int = 0
    """Threads with which it guesses; 0 for the same as the model."""
    draft_n_threads_batch: int = 0
    """Threads with which it reads; 0 for `draft_n_threads`, or else the same as the model."""
    draft_n_gpu_layers: int = -1
    draft_cache_type_k: str = "f16"
    draft_cache_type_v: str = "f16"
    embeddings: bool = False
    """Make texts into vectors. A model that cannot generate text does so, or ranks, in any case."""
    reranking: bool = False
    """Score pairs of texts with the model's ranking head."""
    pooling: Literal["auto", "none", "mean", "cls", "last", "rank"] = "auto"
    """How token vectors become one; `auto` for what the model file says."""
    attention: Literal["auto", "causal", "non-causal"] = "auto"
    """What a token sees of the others while inputs are embedded."""
    mmproj: str = ""
    """Path of the GGUF file that turns pictures or sound into what the model reads; empty for one beside the model."""
    mmproj_auto: bool = True
    """Whether a projector beside the model's file is used when none is named."""
    mmproj_offload: bool = True
    """Whether the projector runs on an accelerator, where the build has one."""
    image_min_tokens: int = 0
    """Fewest tokens of a picture, for models that take any size; 0 for what the projector says."""
    image_max_tokens: int = 0
    media_cache: int = -1
    """Bytes of host memory for encoded pictures and sounds; -1 for a share of the machine's memory, 0 for none."""
    verbose: bool = False
    """Let the engine log everything it says."""


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the HTTP side needs to know."""

    host: str = "127.0.0.1"
    port: int = 8080
    alias: str = ""
    """The model's public name; empty for one made from its file name."""
    api_keys: tuple[str, ...] = ()
    """Accepted keys; none means that no key is asked for."""
    cors_origins: tuple[str, ...] = ()
    """Origins that browsers may call from, or `*`; loopback origins are always allowed."""
    allowed_hosts: tuple[str, ...] = ()
    """Extra `Host` names accepted while listening on loopback."""
    max_body: int = 64 * 1024 * 1024
    """Most bytes of a request body."""
    max_queue: int = 512
    """Requests that may wait for a slot before new ones get 429."""
    sse_ping_interval: float = 1.0
    """Seconds between comment lines in a silent stream; -1 for none."""
    sse_ping_after: float = 10.0
    """Seconds of silence before the first comment line."""
    drain_timeout: float = 30.0
    """Seconds that running answers get to finish after SIGTERM."""
    slot_save_path: str = ""
    """Folder that slots are saved to and restored from by name; empty for no such actions."""
    slots_endpoint: bool = True
    slots_prompts: bool = False
    """Whether /slots may show prompt text."""
    metrics_endpoint: bool = True
    chat_template: str = ""
    """Jinja text that replaces the model's own template."""
    chat_template_kwargs: dict[str, Any] = {}
    """Variables of the template, for requests that do not set them."""
    request_templates: bool = False
    """Whether requests may bring Jinja text of their own; names of templates they may always use."""
    prefill_assistant: bool = True
    """Whether a last message of the assistant is continued by requests that do not say."""
    reasoning: bool | None = None
    """Whether the model thinks, for requests that do not say; None for what the template does by itself."""
    reasoning_format: Literal["auto", "none", "deepseek", "deepseek-legacy"] = "auto"
    """Where reasoning is shown, for requests that do not say."""
    reasoning_effort: str = ""
    """What the template is told, for requests that do not say; empty for nothing."""
    reasoning_budget: int = -1
    """Most tokens of reasoning, for requests that do not say; -1 for no limit."""
    reasoning_budget_message: str = ""
    """What the model is made to say to itself where the budget ends."""
    n_predict: int = -1
    """Limit for requests that name none."""
    cache_prompt: bool = True
    """Whether requests that do not say use, and leave, prompts in the cache."""
    cache_reuse: int = 0
    """`n_cache_reuse` of requests that name none."""
    spec_type: SpecType = "none"
    """Where drafts come from, for requests that do not say."""
    draft_max: int = 16
    """Most tokens of a draft, for requests that do not say; the same holds for the next two."""
    draft_min: int = 0
    draft_p_min: float = 0.0
    context_shift: bool = False
    """Whether an answer that fills the context goes on without the oldest part of what came before."""
    n_keep: int = 0
    """Prompt tokens that a shift leaves alone for requests that name none; -1 for all."""
    embd_normalize: int = 2
    """How embeddings are scaled where a request does not say: -1 not, 0 to a largest number of 32760, else to this p-norm."""
    sampling_defaults: dict[str, float] = {}
    """Sampling fields whose default the command line changed, by native name."""
    media_path: str = ""
    """Folder of pictures and sounds that requests may name by `file:` addresses; empty for none."""
    media_fetch: bool = False
    """Whether pictures and sounds are fetched from web servers."""
    media_hosts: tuple[str, ...] = ()
    """The only hosts that they are fetched from; none for any. Naming one allows fetching."""
    media_fetch_private: bool = False
    """Whether these may be in private networks, or this machine."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    request_log: bool = False
    """Whether each request is logged: method, path, status, time."""


class ModelsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Which models a server has besides its first one, and how many of them may be loaded."""

    fim_model: str = ""
    """Path of the model that fills gaps."""
    embedding_model: str = ""
    rerank_model: str = ""
    models_dir: str = ""
    """Folder of GGUF files, each a model under its file's name."""
    catalogue: str = ""
    """TOML or INI file of models with flags of their own."""
    repository: str = ""
    """USER/REPO[:QUANT] of the first model, which is fetched if it is not there."""
    offline: bool = False
    """Whether nothing may be fetched."""
    most: int = 4
    """Most models that are loaded at once; 0 for no limit."""
    memory: int = 0
    """Most bytes that loaded models may take; 0 for a share of the machine's memory, -1 for no limit."""
    autoload: bool = True
    """Whether a request loads the model that it names."""
    sleep_idle: float = 0.0
    """Seconds without a request after which a model is unloaded; 0 for never."""

    @property
    def named(self) -> bool:
        """Whether there are models besides the first one."""
        return bool(self.fim_model or self.embedding_model or self.rerank_model or self.models_dir or self.catalogue)

    @property
    def several(self) -> bool:
        """Whether there is more to look after than one model that stays."""
        return self.named or self.sleep_idle > 0


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """One server and its first model."""

    engine: EngineSettings
    server: ServerSettings = ServerSettings()
    models: ModelsSettings = ModelsSettings()
