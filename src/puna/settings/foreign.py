"""Flags of llama.cpp's server that change nothing here, and those that puna cannot honour yet.

A start line that worked with llama.cpp must either work or say why not, so both kinds are known by name.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Foreign:
    """A flag that belongs to llama.cpp's server."""

    flags: tuple[str, ...]
    values: int
    """How many values follow it."""
    advice: str
    """What to tell the user; empty for a flag that asks for what puna does anyway."""
    fatal: bool


def _harmless(flags: str, values: int = 0, advice: str = "") -> Foreign:
    return Foreign(tuple(flags.split()), values, advice, fatal=False)


def _unsupported(flags: str, values: int, advice: str) -> Foreign:
    return Foreign(tuple(flags.split()), values, advice, fatal=True)


ONE_DEVICE = "puna runs a model on one device; leave the flag out"
NO_DRAFT_HEADS = "heads that draft are not there; leave the flag out, answers are the same without; see --model-draft"
NO_DRAFT_DOWNLOAD = "fetch the draft model with `puna pull` and pass its file with --model-draft"
NO_DRAFT_TREE = "a draft is one line of tokens, never a tree; leave the flag out"
NO_DRAFT_FILES = "n-grams come from this server's own requests, not from files; leave the flag out; see --spec-type"
NGRAM_FIXED = "lengths of n-grams and of their drafts are found by what pays; see --draft-max"
NO_DOWNLOAD = "puna does not download models yet; fetch the file yourself and pass -m FILE"
IN_REQUEST = "send it as a field of the request instead"
NO_THREAD_PLACING = "use taskset or numactl to place the process, or -t to limit its threads"
NO_UI = "there is no web page to serve or to configure; the interactive API page is at /docs"

HARMLESS = (
    _harmless("--jinja"),
    _harmless("--no-jinja", advice="templates are always rendered with Jinja"),
    _harmless("--cont-batching -cb"),
    _harmless("--no-cont-batching -nocb", advice="batching is always continuous"),
    _harmless("--warmup"),
    _harmless("--no-warmup"),
    _harmless("--perf"),
    _harmless("--no-perf"),
    _harmless("--no-webui --no-ui"),
    _harmless("--cache-idle-slots --clear-idle"),
    _harmless("--escape -e --no-escape"),
    _harmless("--special -sp"),
    _harmless("--check-tensors", advice="tensors are not checked one by one; `puna doctor` checks the file's size"),
    _harmless("--threads-http", 1, "one event loop serves all connections"),
    _harmless("--timeout -to", 1, "a slow request is not ended by the clock; a client that goes away ends its own"),
    _harmless("--props", advice="GET /props is always there; changing properties by POST is not"),
    _harmless("--no-cache-idle-slots --no-clear-idle", advice="only running requests hold cells; see --cache-ram"),
    _harmless("--defrag-thold -dt", 1, "the engine no longer needs it"),
    _harmless("--fit -fit", 1, "context and slots are always fitted to memory"),
    _harmless("--fit-target -fitt --fit-ctx -fitc", 1, "context and slots are fitted to memory without targets"),
    _harmless("--ctx-checkpoints -ctxcp --swa-checkpoints --checkpoint-min-step -cms", 1, "checkpoints are not tunable"),
    _harmless("--prio --prio-batch --poll --poll-batch --cpu-strict --cpu-strict-batch", 1, NO_THREAD_PLACING),
    _harmless("--spec-ngram-mod-n-min --spec-ngram-mod-n-max --spec-ngram-mod-n-match", 1, NGRAM_FIXED),
    _harmless("--spec-ngram-simple-size-n --spec-ngram-simple-size-m --spec-ngram-simple-min-hits", 1, NGRAM_FIXED),
    _harmless("--spec-ngram-map-k-size-n --spec-ngram-map-k-size-m --spec-ngram-map-k-min-hits", 1, NGRAM_FIXED),
    _harmless("--spec-ngram-map-k4v-size-n --spec-ngram-map-k4v-size-m --spec-ngram-map-k4v-min-hits", 1, NGRAM_FIXED),
    _harmless("--spec-ngram-size-n --spec-ngram-size-m --spec-ngram-min-hits", 1, NGRAM_FIXED),
    _harmless("--spec-draft-backend-sampling --no-spec-draft-backend-sampling"),
    _harmless("--spec-draft-cpu-strict --cpu-strict-draft --spec-draft-prio --prio-draft", 1, NO_THREAD_PLACING),
    _harmless("--spec-draft-poll --poll-draft --spec-draft-cpu-strict-batch --cpu-strict-batch-draft", 1, NO_THREAD_PLACING),
    _harmless("--spec-draft-prio-batch --prio-batch-draft --spec-draft-poll-batch --poll-batch-draft", 1, NO_THREAD_PLACING),
    _harmless("--log-colors", 1, "the log has no colours"),
    _harmless("--log-prefix --no-log-prefix --log-timestamps --no-log-timestamps", advice="the log's form is fixed"),
    _harmless("--cors-methods --cors-headers", 1, "every method and header of the API is allowed to allowed origins"),
    _harmless("--cors-credentials --no-cors-credentials", advice="credentials are never asked of browsers"),
)

UNSUPPORTED = (
    _unsupported("--mmproj-url -mmu", 1, NO_DOWNLOAD),
    _unsupported("--mmproj-device -mmdev", 1, ONE_DEVICE),
    _unsupported("--image --audio --video", 1, "send pictures and sounds in the request"),
    _unsupported("--mtmd-batch-max-tokens", 1, "pictures and sounds are encoded one by one; leave the flag out"),
    _unsupported("--hf-repo-draft -hfd -hfrd --spec-draft-hf", 1, NO_DRAFT_DOWNLOAD),
    _unsupported("--draft-p-split --spec-draft-p-split", 1, NO_DRAFT_TREE),
    _unsupported("--device-draft -devd --spec-draft-device --spec-draft-override-tensor -otd --override-tensor-draft", 1,
                 ONE_DEVICE),
    _unsupported("--spec-draft-n-cpu-moe --spec-draft-ncmoe -ncmoed --n-cpu-moe-draft", 1, ONE_DEVICE),
    _unsupported("--spec-draft-cpu-moe -cmoed --cpu-moe-draft", 0, ONE_DEVICE),
    _unsupported("--spec-draft-cpu-mask -Cd --cpu-mask-draft", 1, NO_THREAD_PLACING),
    _unsupported("--spec-draft-cpu-range -Crd --cpu-range-draft", 1, NO_THREAD_PLACING),
    _unsupported("--spec-draft-cpu-mask-batch -Cbd --cpu-mask-batch-draft", 1, NO_THREAD_PLACING),
    _unsupported("--spec-draft-cpu-range-batch -Crbd --cpu-range-batch-draft", 1, NO_THREAD_PLACING),
    _unsupported("--lookup-cache-static -lcs --lookup-cache-dynamic -lcd", 1, NO_DRAFT_FILES),
    _unsupported("--spec-synth-len --spec-synth-rates", 1, "drafts are never made up; leave the flag out"),
    _unsupported("--mtp --dflash --eagle3", 0, NO_DRAFT_HEADS),
    _unsupported("--rpc", 1, "puna does not spread a model over machines; leave the flag out"),
    _unsupported("--swa-full", 0, "sliding windows keep their own size; leave the flag out"),
    _unsupported("--hf-file -hff --hf-token -hft --model-url -mu --docker-repo -dr", 1, NO_DOWNLOAD),
    _unsupported("--ssl-key-file --ssl-cert-file", 1, "puna speaks plain HTTP; put a proxy such as Caddy or nginx before it"),
    _unsupported("--api-prefix", 1, "routes have no prefix; let a proxy add one"),
    _unsupported("--path --ui-config --webui-config --ui-config-file --webui-config-file", 1, NO_UI),
    _unsupported("--ui --webui --ui-mcp-proxy --webui-mcp-proxy", 0, NO_UI),
    _unsupported("--tools --tools-runtime --mcp-servers-config --mcp-servers-json", 1, "puna runs no tools itself; clients do"),
    _unsupported("--agent -ag", 0, "puna runs no tools itself; clients do"),
    _unsupported("--device -dev --split-mode -sm --tensor-split -ts --main-gpu -mg --override-tensor -ot", 1, ONE_DEVICE),
    _unsupported("--n-cpu-moe -ncmoe --n-cpu-ffn -ncffn", 1, ONE_DEVICE),
    _unsupported("--cpu-moe -cmoe --no-kv-offload -nkvo --no-op-offload --no-host", 0, ONE_DEVICE),
    _unsupported("--numa --cpu-mask -C --cpu-range -Cr --cpu-mask-batch -Cb --cpu-range-batch -Crb", 1, NO_THREAD_PLACING),
    _unsupported("--override-kv", 1, "metadata is taken as it is in the file; change the file with gguf-set-metadata"),
    _unsupported("--load-mode -lm --lazy-mode -lzm", 1, "use --mmap, --no-mmap and --mlock"),
    _unsupported("--yarn-orig-ctx --yarn-ext-factor --yarn-attn-factor --yarn-beta-slow --yarn-beta-fast", 1,
                 "YaRN's own parameters come from the model file; --rope-scaling, --rope-scale and --rope-freq-base are there"),
    _unsupported("--grp-attn-n -gan --grp-attn-w -gaw", 1, "self-extend is not there; use --rope-scaling"),
    _unsupported("--grammar --grammar-file --json-schema -j --json-schema-file -jf --logit-bias -l", 1, IN_REQUEST),
    _unsupported("--samplers --sampler-seq --sampling-seq --dry-sequence-breaker", 1, IN_REQUEST),
    _unsupported("--ignore-eos --backend-sampling -bs", 0, IN_REQUEST),
    _unsupported("--skip-chat-parsing --reuse-port --spm-infill", 0, "leave the flag out"),
    _unsupported("--log-file --log-prompts-dir", 1, "the log goes to standard error; send that to a file: 2> puna.log"),
    _unsupported("--log-jsonl", 0, "the log is plain text; leave the flag out"),
    _unsupported("--tags", 1, "models carry no tags; leave the flag out"),
)  # fmt: skip

FOREIGN = {flag: entry for entry in (*HARMLESS, *UNSUPPORTED) for flag in entry.flags}


def variable_flag(variable: str) -> str:
    """The long flag that llama.cpp's environment variable of this name stands for, by its usual naming."""
    return "--" + variable.removeprefix("LLAMA_ARG_").lower().replace("_", "-")
