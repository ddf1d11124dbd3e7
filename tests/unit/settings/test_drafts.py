"""Options of drafts."""

from __future__ import annotations

import pytest

from puna.config import Settings
from puna.errors import StartupError
from puna.settings import load, variant


def flags(line: str, environment: dict[str, str] | None = None) -> Settings:
    return load(line.split(), environment or {}).settings


def message(line: str) -> str:
    with pytest.raises(StartupError) as caught:
        load(line.split(), {})
    return str(caught.value)


def test_a_draft_model_drafts_unless_told_otherwise() -> None:
    settings = flags("-m m -md d -cd 512 -td 3 -tbd 4 -ngld 0 -ctkd q8_0 --draft-max 9 --draft-min 2 --draft-p-min 0.5")
    assert (settings.engine.draft_model, settings.engine.draft_n_ctx, settings.engine.draft_n_threads) == ("d", 512, 3)
    assert (settings.engine.draft_n_threads_batch, settings.engine.draft_n_gpu_layers) == (4, 0)
    assert (settings.engine.draft_cache_type_k, settings.engine.draft_cache_type_v) == ("q8_0", "f16")
    server = settings.server
    assert (server.spec_type, server.draft_max, server.draft_min, server.draft_p_min) == ("draft", 9, 2, 0.5)
    assert flags("-md d --spec-type ngram-mod").server.spec_type == "ngram-cache"
    assert flags("-md d --spec-type draft-simple,ngram-mod").server.spec_type == "auto"
    assert flags("", {"LLAMA_ARG_SPEC_DRAFT_MODEL": "d"}).server.spec_type == "draft"
    assert flags("--spec-type ngram-map").server.spec_type == "ngram-map"
    assert flags("--spec-default").server.spec_type == "ngram-cache"
    for line in ("--spec-type draft", "--spec-type draft-simple"):
        assert "--spec-type: there is no draft model" in message(line)
    assert "--spec-type: 'mtp' is none of" in message("--spec-type mtp")
    assert "'none' cannot be combined" in message("--spec-type none,ngram-map")
    assert "flash attention" in message("-md d -ctvd q8_0 -fa off")


def test_other_models_of_a_server_have_no_draft_model() -> None:
    for line, expected in (("-md d --spec-type draft", "none"), ("-md d", "none"), ("-md d --spec-type ngram-map", "ngram-map")):
        other = variant(load(f"-m m {line}".split(), {}), ())
        assert (other.engine.draft_model, other.server.spec_type) == ("", expected)
