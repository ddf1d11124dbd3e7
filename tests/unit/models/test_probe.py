"""What model files can be used for."""

from __future__ import annotations

from pathlib import Path

import pytest

from puna.config import EngineSettings, Settings
from puna.gguf import read_header
from puna.models.catalogue import Catalogue, Entry, Job
from puna.models.probe import jobs
from puna.server.jobs import job_of
from tests import tiny


def test_a_projector_for_sound_makes_a_model_that_hears(tmp_path: Path) -> None:
    model = read_header(tiny.write_llama(tmp_path / "m.gguf"))
    engine = EngineSettings(model=model.path)
    ears, eyes = tmp_path / "ears.gguf", tmp_path / "eyes.gguf"
    tiny.write_projector(ears, vision="mlp", audio=True)
    tiny.write_projector(eyes, vision="mlp", audio=False)
    (tmp_path / "broken.gguf").write_bytes(b"GGUF")
    assert jobs(model, engine, str(ears)) == {"text", "infill", "speech"}
    for other in ("", str(eyes), str(tmp_path / "broken.gguf")):
        assert jobs(model, engine, other) == {"text", "infill"}


@pytest.mark.parametrize("path", ["/v1/audio/transcriptions", "/audio/transcriptions"])
def test_transcripts_are_asked_of_the_model_that_hears(path: str) -> None:
    settings = Settings(engine=EngineSettings(model="m.gguf"))
    ears: frozenset[Job] = frozenset(["text", "speech"])
    entries = [Entry(name="ears", settings=settings, jobs=ears), Entry(name="plain", settings=settings)]
    job = job_of("POST", path)
    assert job is not None
    assert Catalogue(entries).choose("whisper-1", job).name == Catalogue(entries).choose(None, job).name == "ears"
    assert Catalogue(entries).choose("plain", job).name == "plain"
