"""From values of every source to `puna.config.Settings`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from puna.config import EngineSettings, ModelsSettings, ServerSettings, Settings
from puna.errors import StartupError
from puna.settings import environment as environment_source
from puna.settings import file as file_source
from puna.settings import flags as flag_source
from puna.settings import templates
from puna.settings.adapters import ADAPTER_OPTIONS
from puna.settings.cache import CACHE_OPTIONS
from puna.settings.chat import CHAT_OPTIONS
from puna.settings.drafts import DRAFT_OPTIONS
from puna.settings.media import MEDIA_OPTIONS
from puna.settings.media_access import MEDIA_ACCESS_OPTIONS
from puna.settings.models import MODELS_OPTIONS
from puna.settings.option import Given
from puna.settings.pooling import POOLING_OPTIONS
from puna.settings.preset import PRESET_OPTIONS, PRESETS
from puna.settings.reasoning import REASONING_OPTIONS
from puna.settings.sampling import SAMPLING_OPTIONS
from puna.settings.table import ENGINE_OPTIONS, LOG_OPTIONS, MODEL_OPTIONS, SERVER_OPTIONS
from puna.settings.values import LISTS, Value

OPTIONS = (
    *MODEL_OPTIONS,
    *PRESET_OPTIONS,
    *MEDIA_OPTIONS,
    *CHAT_OPTIONS,
    *ADAPTER_OPTIONS,
    *ENGINE_OPTIONS,
    *CACHE_OPTIONS,
    *POOLING_OPTIONS,
    *SERVER_OPTIONS,
    *MEDIA_ACCESS_OPTIONS,
    *DRAFT_OPTIONS,
    *MODELS_OPTIONS,
    *REASONING_OPTIONS,
    *SAMPLING_OPTIONS,
    *LOG_OPTIONS,
)


@dataclass(frozen=True)
class Loaded:
    """The settings, and what the user should be told about how they came to be."""

    settings: Settings
    """`settings.engine.model` is empty when no source named a model."""
    notes: tuple[str, ...]
    found: Mapping[str, Found] = field(default_factory=dict, repr=False, compare=False)
    """What all sources together say."""


@dataclass(frozen=True)
class Found:
    """A target's value and where it came from."""

    value: Value
    origin: str
    option: str
    """The option's name: two options may share a target."""


def load(arguments: Sequence[str], environment: Mapping[str, str]) -> Loaded:
    """Read all sources in order: defaults, file, environment, flags; the later wins.

    Raises `StartupError` whose message begins with the flag, the variable, or the file and line at fault.
    """
    from_flags = flag_source.read(arguments, OPTIONS)
    from_environment = environment_source.read(environment, OPTIONS)
    outer = _merge([from_environment.given, from_flags.given])
    config = outer.get("load.config")
    from_file = file_source.read(str(config.value), config.origin, OPTIONS).given if config else ()
    found = _merge([from_file, from_environment.given, from_flags.given])
    if preset := found.get("load.preset"):
        for target, value in PRESETS[str(preset.value)].items():
            found.setdefault(target, Found(value, preset.origin, preset.option))
    return Loaded(_settings(found), (*from_environment.notes, *from_flags.notes), found)


def variant(loaded: Loaded, given: Iterable[Given]) -> Settings:
    """The settings of another model of the same server: those that are not about one model, and over them the given ones.

    Raises `StartupError` as `load` does.
    """
    shared = {
        target: one for target, one in loaded.found.items() if target not in OF_ONE_MODEL and not target.startswith("models.")
    }
    if "server.spec_type" in shared and shared["server.spec_type"].value == "draft":
        del shared["server.spec_type"]  # the draft model is another one's
    return _settings({**shared, **_merge([given])})


OF_ONE_MODEL = frozenset([
    "engine.model", "server.alias", "engine.lora", "engine.lora_init_without_apply", "engine.control_vectors",
    "engine.control_vector_layers", "engine.mmproj", "engine.embeddings", "engine.reranking", "engine.pooling",
    "engine.attention", "engine.draft_model", "load.chat_template", "load.chat_template_kwargs",
])  # fmt: skip
"""Targets that other models do not inherit."""


def _merge(sources: Iterable[Iterable[Given]]) -> dict[str, Found]:
    found: dict[str, Found] = {}
    for source in sources:
        seen: set[str] = set()
        for given in source:
            target = given.option.target
            value = _parse(given)
            if isinstance(given.option.kind, LISTS) and target in seen:
                value = _joined(found[target].value, value)
            seen.add(target)
            found[target] = Found(value, given.origin, given.option.name)
            for other, implied in given.option.also.get(value, {}).items():
                found[other] = Found(implied, given.origin, given.option.name)
    return found


def _joined(before: Value, value: Value) -> Value:
    if isinstance(before, tuple) and isinstance(value, tuple):
        return (*before, *value)
    return value


def _parse(given: Given) -> Value:
    try:
        return given.option.kind.parse(given.text)
    except ValueError as error:
        raise StartupError(f"{given.origin}: {error}") from error


def _settings(found: Mapping[str, Found]) -> Settings:
    engine = _section(found, "engine")
    server = _section(found, "server")
    sampling = _section(found, "sampling").items()
    server["sampling_defaults"] = {name: float(value) for name, value in sampling if isinstance(value, (int, float))}
    server["api_keys"] = _api_keys(found)
    server["chat_template"] = _chat_template(found)
    kwargs = found.get("load.chat_template_kwargs")
    server["chat_template_kwargs"] = json.loads(str(kwargs.value)) if kwargs else {}
    engine.setdefault("model", "")
    if engine.get("draft_model"):
        server.setdefault("spec_type", "draft")
    settings = msgspec.convert({"engine": engine, "server": server, "models": _section(found, "models")}, Settings)
    _check(settings, found)
    return settings


def _section(found: Mapping[str, Found], name: str) -> dict[str, object]:
    prefix = name + "."
    return {target.removeprefix(prefix): one.value for target, one in found.items() if target.startswith(prefix)}


def _api_keys(found: Mapping[str, Found]) -> tuple[str, ...]:
    keys = found.get("load.api_key")
    file = found.get("load.api_key_file")
    listed = [str(key) for key in keys.value] if keys and isinstance(keys.value, tuple) else []
    if file:
        lines = [line.strip() for line in file_source.read_text(str(file.value), file.origin).splitlines()]
        from_file = [line for line in lines if line]
        if not from_file:
            raise StartupError(f"{file.origin}: {file.value} holds no key, and a server without keys is open to everybody")
        listed += from_file
    return tuple(dict.fromkeys(listed))


def _chat_template(found: Mapping[str, Found]) -> str:
    given = found.get("load.chat_template")
    if given is None:
        return ""
    if given.option == "chat-template-file":
        content = file_source.read_text(str(given.value), given.origin)
        if not templates.is_jinja(content):
            raise StartupError(f"{given.origin}: {given.value} is no chat template: there is no Jinja in it")
        return content
    try:
        return templates.resolve(str(given.value))
    except ValueError as error:
        raise StartupError(f"{given.origin}: {error}") from error


def _check(settings: Settings, found: Mapping[str, Found]) -> None:
    """What no single option can tell."""
    engine = settings.engine
    for target in ("slot_save_path", "media_path"):
        folder = getattr(settings.server, target)
        if folder and not Path(folder).expanduser().is_dir():
            raise StartupError(f"{found[f'server.{target}'].origin}: there is no folder {folder}")
    if engine.cache_type_v not in {"f32", "f16", "bf16"} and engine.flash_attention == "off":
        origin = found["engine.cache_type_v"].origin
        raise StartupError(f"{origin}: {engine.cache_type_v} for cached values needs flash attention; drop --flash-attn off")
    if engine.draft_cache_type_v not in {"f32", "f16", "bf16"} and engine.flash_attention == "off":
        origin = found["engine.draft_cache_type_v"].origin
        raise StartupError(
            f"{origin}: {engine.draft_cache_type_v} for cached values needs flash attention; drop --flash-attn off"
        )
    if settings.server.spec_type == "draft" and not engine.draft_model:
        raise StartupError(f"{found['server.spec_type'].origin}: there is no draft model; name one with --model-draft")
    layers = found.get("engine.control_vector_layers")
    if layers and not engine.control_vectors:
        raise StartupError(f"{layers.origin}: there is no control vector to which the range could apply; add --control-vector")
    first, last = engine.control_vector_layers
    if layers and 0 < last < first:
        raise StartupError(f"{layers.origin}: the range ends before it begins")


DEFAULTS: Mapping[str, object] = {
    **{f"engine.{name}": value for name, value in msgspec.structs.asdict(EngineSettings(model="")).items()},
    **{f"server.{name}": value for name, value in msgspec.structs.asdict(ServerSettings()).items()},
    **{f"models.{name}": value for name, value in msgspec.structs.asdict(ModelsSettings()).items()},
}
"""Target to default, for the help."""
