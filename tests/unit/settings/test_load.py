from __future__ import annotations

from pathlib import Path

import jinja2
import pytest

from puna.chat_templates import BUILT_IN
from puna.config import EngineSettings, ScaledFile, ServerSettings, Settings
from puna.errors import StartupError
from puna.settings import load, option_help
from puna.settings.build import DEFAULTS, OPTIONS
from puna.settings.foreign import FOREIGN
from puna.settings.preset import PRESETS
from puna.settings.values import Integer
from puna.types import Sampling


def flags(line: str, environment: dict[str, str] | None = None) -> Settings:
    return load(line.split(), environment or {}).settings


def message(line: str, environment: dict[str, str] | None = None) -> str:
    with pytest.raises(StartupError) as caught:
        load(line.split(), environment or {})
    return str(caught.value)


FILES = "--lora a,b --lora-scaled c:0.5 --lora-scaled d -1.5 --lora e"


def test_adapters_are_numbered_in_the_order_of_the_flags() -> None:
    given = [("a", 1.0), ("b", 1.0), ("c", 0.5), ("d", -1.5), ("e", 1.0)]
    assert flags(FILES).engine.lora == tuple(ScaledFile(*one) for one in given)
    assert flags(FILES.replace("--lora", "--control-vector")).engine.control_vectors == flags(FILES).engine.lora
    assert flags("--lora a", {"PUNA_LORA": "b"}).engine.lora == (ScaledFile("a"),)
    assert flags("", {"PUNA_LORA_SCALED": 'b:2,"c,d:e":3'}).engine.lora == (ScaledFile("b", 2.0), ScaledFile("c,d:e", 3.0))


def test_the_layers_of_control_vectors() -> None:
    for form in ("1 10", "1:10", "=1,10"):
        line = "--control-vector v --control-vector-layer-range " + form
        assert flags(line.replace(" =", "=")).engine.control_vector_layers == (1, 10)
    twice = "--control-vector v --control-vector-layer-range 1 2 --control-vector-layer-range -1 0"
    assert flags(twice).engine.control_vector_layers == (-1, 0)


def test_adapters_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "puna.toml"
    file.write_text('lora = ["a.gguf", "b.gguf"]\nlora-scaled = "c.gguf:0.5"\nlora-init-without-apply = true\n')
    engine = flags(f"--config {file}").engine
    assert [(one.path, one.scale) for one in engine.lora] == [("a.gguf", 1.0), ("b.gguf", 1.0), ("c.gguf", 0.5)]
    assert engine.lora_init_without_apply


def test_nothing_given_means_defaults() -> None:
    loaded = load([], {"PATH": "/bin", "HOME": "/"})
    assert loaded.settings == Settings(engine=EngineSettings(model=""), server=ServerSettings())
    assert loaded.notes == ()


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("-m a.gguf", "model", "a.gguf"),
        ("--model=a=b.gguf", "model", "a=b.gguf"),
        ("-c 8192", "n_ctx", 8192),
        ("--ctx_size 8192", "n_ctx", 8192),
        ("-np 4", "n_slots", 4),
        ("-np -1", "n_slots", 0),
        ("-np auto", "n_slots", 0),
        ("-ngl all", "n_gpu_layers", -1),
        ("-ngl 0", "n_gpu_layers", 0),
        ("-fa", "flash_attention", "on"),
        ("-fa -c 1", "flash_attention", "on"),
        ("-fa off", "flash_attention", "off"),
        ("-fa 0", "flash_attention", "off"),
        ("--flash-attn=auto", "flash_attention", "auto"),
        ("-kvu", "layout", "unified"),
        ("-no-kvu", "layout", "split"),
        ("--layout split --kv-unified", "layout", "unified"),
        ("-ctk q8_0", "cache_type_k", "q8_0"),
        ("--cache-ram 100", "cache_ram", 100 << 20),
        ("--cache-ram 0", "cache_ram", 0),
        ("--no-mmap", "mmap", False),
        ("--mlock", "mlock", True),
        ("-nr", "repack", False),
        ("--rope-scale 4", "rope_freq_scale", 0.25),
        ("-v", "verbose", True),
        ("-t 3 -t 5", "n_threads", 5),
    ],
)
def test_engine_flags(line: str, field: str, value: object) -> None:
    assert getattr(flags(line).engine, field) == value


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("--host 0.0.0.0", "host", "0.0.0.0"),
        ("--port 0", "port", 0),
        ("-a tiny", "alias", "tiny"),
        ("--api-key a,b --api-key c", "api_keys", ("a", "b", "c")),
        ("--cors-origins https://x.example", "cors_origins", ("https://x.example",)),
        ("--max-body 2M", "max_body", 2 << 20),
        ("--no-slots", "slots_endpoint", False),
        ("--no-metrics", "metrics_endpoint", False),
        ("--metrics", "metrics_endpoint", True),
        ("-n 7", "n_predict", 7),
        ("--no-cache-prompt", "cache_prompt", False),
        ("--cache-prompt", "cache_prompt", True),
        ("--cache-reuse 256", "cache_reuse", 256),
        ("--context-shift", "context_shift", True),
        ("--context-shift --no-context-shift", "context_shift", False),
        ("--keep -1", "n_keep", -1),
        ("-v", "log_level", "debug"),
        ("-lv 1", "log_level", "error"),
        ("--log-disable", "log_level", "error"),
        ("--temp 0 --top-k 1 --seed 4294967295", "sampling_defaults", {"temperature": 0.0, "top_k": 1.0, "seed": 4294967295.0}),
        ("--chat-template {{x}}", "chat_template", "{{x}}"),
        ("--chat-template chatml", "chat_template", BUILT_IN["chatml"]),
        ("--reasoning off", "reasoning", False),
        ("-rea on", "reasoning", True),
        ("--reasoning auto", "reasoning", None),
        ("--reasoning-format none", "reasoning_format", "none"),
        ("--reasoning-effort low", "reasoning_effort", "low"),
        ("--reasoning-budget 100", "reasoning_budget", 100),
        ("--reasoning-budget-message Now!", "reasoning_budget_message", "Now!"),
        ('--chat-template-kwargs {"a":[1]}', "chat_template_kwargs", {"a": [1]}),
        ("--request-templates", "request_templates", True),
        ("--no-prefill-assistant", "prefill_assistant", False),
    ],
)
def test_server_flags(line: str, field: str, value: object) -> None:
    assert getattr(flags(line).server, field) == value


def test_where_prompts_rest(tmp_path: Path) -> None:
    chosen = flags(f"--cache-dir /x/y --cache-disk 5 -sps 0.5 --slot-save-path {tmp_path}")
    assert (chosen.engine.cache_dir, chosen.engine.cache_disk, chosen.engine.slot_similarity) == ("/x/y", 5 << 20, 0.5)
    assert chosen.server.slot_save_path == str(tmp_path)
    assert message(f"--slot-save-path {tmp_path}/none") == f"--slot-save-path: there is no folder {tmp_path}/none"
    assert message("-sps 1.5").startswith("-sps: 1.5 is more than 1")
    assert message("--cache-disk 0").startswith("--cache-disk: 0 is not between")


def test_each_source_wins_over_the_one_before(tmp_path: Path) -> None:
    file = tmp_path / "puna.toml"
    file.write_text("port = 1\nctx_size = 10\nparallel = 1\n")
    environment = {"PUNA_CONFIG": str(file), "PUNA_PORT": "2", "LLAMA_ARG_CTX_SIZE": "20"}
    settings = flags("--port 3", environment)
    assert (settings.server.port, settings.engine.n_ctx, settings.engine.n_slots) == (3, 20, 1)


def test_own_variable_wins_over_the_borrowed_one() -> None:
    assert flags("", {"PUNA_PORT": "2", "LLAMA_ARG_PORT": "1"}).server.port == 2


def test_an_empty_variable_counts_as_absent() -> None:
    assert flags("", {"LLAMA_API_KEY": "", "PUNA_PORT": " "}).server == ServerSettings()


def test_a_list_replaces_the_one_of_an_earlier_source() -> None:
    assert flags("--api-key x", {"LLAMA_API_KEY": "y"}).server.api_keys == ("x",)


@pytest.mark.parametrize("value", ["1", "0", "true"])
def test_a_negative_variable_means_off_whatever_it_holds(value: str) -> None:
    assert flags("", {"LLAMA_ARG_NO_MMAP": value}).engine.mmap is False


def test_every_kind_of_toml_value(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text(
        'mmap = false\napi-key = ["a", "b"]\ntemp = 0.5\nmodel = "m.gguf"\nflash-attn = true\n"log-level" = "error"\n'
    )
    settings = flags(f"--config {file}")
    assert settings.engine.mmap is False
    assert settings.server.api_keys == ("a", "b")
    assert settings.server.sampling_defaults == {"temperature": 0.5}
    assert (settings.engine.model, settings.engine.flash_attention, settings.server.log_level) == ("m.gguf", "on", "error")


def test_key_file_adds_to_the_keys(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("one\n\n  two  \n")
    assert flags(f"--api-key-file {file} --api-key zero").server.api_keys == ("zero", "one", "two")


def test_a_key_file_without_keys_does_not_open_the_server(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("\n \n")
    assert (
        message(f"--api-key-file {file}")
        == f"--api-key-file: {file} holds no key, and a server without keys is open to everybody"
    )


def test_the_later_source_gives_the_template(tmp_path: Path) -> None:
    file = tmp_path / "t.jinja"
    file.write_text("from file {{ x }}")
    assert flags(f"--chat-template-file {file}", {"PUNA_CHAT_TEMPLATE": "chatml"}).server.chat_template == "from file {{ x }}"
    assert flags("--chat-template plain", {"PUNA_CHAT_TEMPLATE_FILE": "/nowhere"}).server.chat_template == BUILT_IN["plain"]


@pytest.mark.parametrize("content", ["", "  \n", "chatml"])
def test_a_template_file_holds_a_template(tmp_path: Path, content: str) -> None:
    file = tmp_path / "t.jinja"
    file.write_text(content)
    assert message(f"--chat-template-file {file}").endswith("is no chat template: there is no Jinja in it")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--port abc", "--port: 'abc' is not a whole number"),
        ("--port 70000", "--port: 70000 is not between 0 and 65535"),
        ("-c", "-c needs a value: -c N"),
        ("--prot 1", "unknown flag --prot; did you mean --port? (`puna serve --help` lists them all)"),
        ("--flash on", "unknown flag --flash; did you mean --flash-attn? (`puna serve --help` lists them all)"),
        ("--paralel 1", "unknown flag --paralel; did you mean --parallel? (`puna serve --help` lists them all)"),
        ("model.gguf", "'model.gguf' is not a flag; a model file goes after -m, and `puna serve --help` lists the flags"),
        ("--lora ,", "--lora: the value is empty"),
        ("--lora-scaled a.gguf", "--lora-scaled needs a value: --lora-scaled FILE:SCALE"),
        ("--lora-scaled a.gguf -c", "--lora-scaled: 'a.gguf:-c' is not a file, a colon and a number"),
        ("--lora-scaled a.gguf:nan", "--lora-scaled needs a value"),
        ("--lora-scaled=a.gguf:1e39,b.gguf:1", "--lora-scaled: 'a.gguf:1e39' is not a file, a colon and a number"),
        ("--control-vector-layer-range 3", "--control-vector-layer-range needs a value"),
        ("--control-vector-layer-range 1 x", "--control-vector-layer-range: '1:x' is not a range such as 1:10"),
        ("--control-vector-layer-range 1 2", "--control-vector-layer-range: there is no control vector"),
        ("--control-vector v --control-vector-layer-range 3 2", "--control-vector-layer-range: the range ends before it begins"),
        ("-hff a/b", "-hff is known from llama.cpp's server but not supported here: puna does not download models yet;"),
        ("--slots=1", "--slots takes no value"),
        ("--api-key ,", "--api-key: the value is empty"),
        ("--api-key-file /no/such", "--api-key-file: cannot read /no/such: No such file or directory"),
        ("--media-path /no/such", "--media-path: there is no folder /no/such"),
        ("--no-webui -cb --port x", "--port: 'x' is not"),
        ("--config /no/such", "--config: cannot read /no/such: No such file or directory"),
        ("--chat-template-kwargs [1]", "--chat-template-kwargs: a JSON object is expected"),
        ("--chat-template-kwargs {", "--chat-template-kwargs: no JSON"),
        ("--chat-template nope", "--chat-template: 'nope' is neither Jinja text nor a built-in template"),
        ("-ctv q8_0 -fa off", "-ctv: q8_0 for cached values needs flash attention"),
        ("--temp nan", "--temp: 'nan' is not a finite number"),
    ],
)
def test_a_bad_flag_is_named(line: str, expected: str) -> None:
    assert message(line).startswith(expected)


def test_a_bad_variable_is_named() -> None:
    assert message("", {"LLAMA_ARG_PORT": "x"}) == "LLAMA_ARG_PORT: 'x' is not a whole number"
    assert message("", {"PUNA_LAYOUT": "x"}) == "PUNA_LAYOUT: 'x' is not one of auto, unified, split"
    assert message("", {"LLAMA_ARG_MMPROJ_URL": "p"}).startswith("LLAMA_ARG_MMPROJ_URL is known from llama.cpp's server")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a = 1", " line 1 (a): there is no such option"),
        ("port = 1\n\nporrt = 2", " line 3 (porrt): there is no such option; did you mean port?"),
        ("port = 1\nlayout = 'x'", " line 2 (layout): 'x' is not one of auto, unified, split"),
        ("port = true", " line 1 (port): 'on' is not a whole number"),
        ("port = {a = 1}", " line 1 (port): expected a number, a text, true or false, or a list of texts"),
        ("[port]\na = 1", " line 1 (port): expected a number"),
        ("port = ", ": not valid TOML: "),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, content: str, expected: str) -> None:
    file = tmp_path / "c.toml"
    file.write_text(content)
    assert message(f"--config {file}").startswith(f"{file}{expected}")


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_bytes(b"a = '\xff'")
    assert message(f"--config {file}") == f"--config: {file} is not UTF-8 text (byte 5)"


def test_what_changes_nothing_is_noted() -> None:
    loaded = load(
        ["--jinja", "--threads-http", "4", "--timeout=600", "--port", "1"], {"PUNA_PROT": "1", "LLAMA_ARG_MMPROJ_AUTO": "0"}
    )
    assert loaded.settings.server.port == 1
    assert loaded.notes == (
        "PUNA_PROT has no effect: there is no such variable; did you mean PUNA_PORT?",
        "--threads-http has no effect: one event loop serves all connections",
        "--timeout has no effect: a slow request is not ended by the clock; a client that goes away ends its own",
    )


def test_a_start_line_of_the_cpp_server_works() -> None:
    line = "-m m.gguf -c 16384 -np 4 -t 2 -tb 2 -b 2048 -ub 512 -ngl 99 -fa on -ctk f16 -ctv f16 --host 127.0.0.1 --port 8091 "
    line += "--jinja --slots --metrics --props --cache-ram 1024 --no-mmap --mlock --temp 0.7 --top-k 40 --seed 1 -n 100"
    settings = flags(line)
    assert (settings.engine.n_ctx, settings.engine.n_slots, settings.server.port, settings.server.n_predict) == (
        16384,
        4,
        8091,
        100,
    )


def test_the_table_is_sound() -> None:
    spellings = [flag for option in OPTIONS for flag in (*option.flags, *option.off_flags)]
    assert len(spellings) == len(set(spellings))
    assert not set(spellings) & set(FOREIGN)
    variables = [name for option in OPTIONS for name in (option.own_variable, *option.variables)]
    assert len(variables) == len(set(variables))
    assert all(option.flags[0].startswith("--") for option in OPTIONS)


def test_every_target_is_a_field() -> None:
    loads = {
        "load.config",
        "load.chat_template",
        "load.chat_template_kwargs",
        "load.api_key",
        "load.api_key_file",
        "load.kv_unified",
        "load.verbosity",
        "load.reasoning",
        "load.preset",
        "load.spec_default",
    }
    known = {*DEFAULTS, *(f"sampling.{name}" for name in Sampling.__struct_fields__), *loads, "load.log_disable"}
    targets = {option.target for option in OPTIONS}
    targets |= {target for option in OPTIONS for effects in option.also.values() for target in effects}
    targets |= {target for values in PRESETS.values() for target in values}
    assert targets <= known


def test_the_help_has_every_option_within_its_width() -> None:
    text = option_help(100)
    headings = [line for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert len(headings) == len(set(headings)) > 5
    assert all(option.flags[0] in text and option.help.split()[0] in text for option in OPTIONS)
    assert max(map(len, text.splitlines())) <= 100
    assert "(default: 64M)" in text
    assert "(default: 0.8)" in text


def test_the_help_gives_defaults_in_the_units_that_flags_take() -> None:
    text = " ".join(option_help(100).split())
    for option in OPTIONS:
        if not isinstance(option.kind, Integer) or option.kind.unit == 1:
            continue
        entry = text.split(f"{option.flags[0]} {option.kind.metavar} ", 1)[1]
        shown = entry.split("(default: ", 1)[1].split(")", 1)[0]
        assert option.kind.parse(shown) == DEFAULTS[option.target]


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_templates_render_a_chat(name: str) -> None:
    chat = [{"role": "system", "content": "Be brief"}, {"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}]
    template = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(BUILT_IN[name])
    text = template.render(messages=[*chat, {"role": "user", "content": "why"}], add_generation_prompt=True, bos_token="<s>")
    places = [text.index(part) for part in ("Be brief", "hi", "yes", "why")]
    assert places == sorted(places)
    assert len(text) > text.index("why") + 5


def test_presets_give_way_to_everything_else(tmp_path: Path) -> None:
    low = flags("--preset low-ram").engine
    assert (low.n_ctx, low.n_slots, low.n_batch, low.cache_ram, low.n_gpu_layers) == (2048, 1, 256, 64 << 20, 0)
    assert flags("--preset balanced").engine.n_slots == 4
    assert flags("--preset gpu-max").engine.flash_attention == "on"
    file = tmp_path / "puna.toml"
    file.write_text("parallel = 3\n")
    mixed = flags(f"-c 1024 --config {file} --mobile-preset low-ram", {"PUNA_N_BATCH": "99"}).engine
    assert (mixed.n_ctx, mixed.n_slots, mixed.n_batch, mixed.n_ubatch) == (1024, 3, 99, 128)
    assert message("--preset tiny").startswith("--preset: ")


def test_llama_crabs_variables_under_our_own_prefix() -> None:
    names = {"N_CTX": "512", "N_BATCH": "64", "N_THREADS": "3", "N_GPU_LAYERS": "0", "MODEL": "m", "MODEL_NAME": "n"}
    more = {"HOST": "::1", "PORT": "1234", "MOBILE_PRESET": "balanced", "POOLING": "mean", "EMBEDDINGS": "1", "RERANKING": "0"}
    loaded = load([], {f"PUNA_{name}": value for name, value in {**names, **more}.items()})
    engine, server = loaded.settings.engine, loaded.settings.server
    assert loaded.notes == ()
    assert (engine.n_ctx, engine.n_batch, engine.n_threads, engine.n_gpu_layers, engine.model) == (512, 64, 3, 0, "m")
    assert (server.alias, server.host, server.port, engine.n_slots) == ("n", "::1", 1234, 4)
