"""Tiny projectors: what they make of pictures and sounds, and what cannot be loaded."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from puna.errors import StartupError
from puna.llama.media import Patch, Projector
from puna.llama.model import Model
from puna.media import Media
from tests.engine.driver import Driver
from tests.engine.media import KINDS, picture, sound, write_pair
from tests.tiny import write_llama, write_projector
from tests.tiny.projector import IMAGE_TOKENS, Vision


def patches(projector: Projector, media: Media) -> list[Patch]:
    return [part for part in projector.expand(media) if isinstance(part, Patch)]


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_and_positions(kind: Vision, tiny_folder: Path) -> None:
    paths = write_pair(tiny_folder, kind)
    model = Model(str(paths[0]))
    projector = Projector(str(paths[1]), model, n_threads=1)
    assert (projector.vision, projector.audio, projector.width) == (True, False, 64)
    (patch,) = patches(projector, picture(64, 48))
    n = 12 if kind == "qwen2vl" else IMAGE_TOKENS[kind]
    assert (patch.kind, patch.n_tokens, patch.causal) == ("image", n, kind != "gemma3")
    places = patch.positions(10)
    if kind == "qwen2vl":
        assert patch.n_pos == 4, "four columns, three rows"
        rows, columns = [10 + i // 4 for i in range(12)], [10 + i % 4 for i in range(12)]
        assert places.tolist() == [[10] * 12, rows, columns, [0] * 12]
    else:
        assert patch.n_pos == n
        assert places.tolist() == [list(range(10, 10 + n))]
    vectors = projector.encode(patch)
    assert vectors.shape == (n, 64)
    assert np.array_equal(vectors, projector.encode(patch))
    (other,) = patches(projector, picture(64, 48, seed=1))
    assert not np.allclose(vectors, projector.encode(other))
    projector.close()


@pytest.mark.parametrize("size", [(1, 1), (1, 900), (900, 1), (333, 77)])
@pytest.mark.parametrize("kind", KINDS)
def test_pictures_of_any_shape(kind: Vision, size: tuple[int, int], tiny_folder: Path) -> None:
    paths = write_pair(tiny_folder, kind)
    projector = Projector(str(paths[1]), Model(str(paths[0])), n_threads=1)
    for patch in patches(projector, picture(*size)):
        assert np.isfinite(projector.encode(patch)).all()


def test_sounds_of_any_length(tiny_llama: Path, tmp_path: Path) -> None:
    path = write_projector(tmp_path / "mmproj.gguf", audio=True, n_layer=1)
    projector = Projector(str(path), Model(str(tiny_llama)), n_threads=1)
    assert (projector.vision, projector.audio, projector.audio_rate) == (False, True, 16000)
    for n, n_patches in ((1, 1), (399, 1), (16000, 1), (16000 * 31, 2)):
        found = patches(projector, sound(n))
        assert [patch.n_tokens for patch in found] == [15] * n_patches
    assert projector.encode(found[0]).shape == (15, 64)


def test_what_is_no_projector_says_why(tiny_llama: Path, tmp_path: Path) -> None:
    whole = write_projector(tmp_path / "mmproj.gguf", vision="mlp")
    short = tmp_path / "short.gguf"
    short.write_bytes(whole.read_bytes()[:-1000])
    other = write_projector(tmp_path / "other.gguf", vision="mlp", n_text=128)
    cases = {
        str(tmp_path / "none.gguf"): "there is no projector file at",
        str(short): "is cut short",
        str(tiny_llama): "is no projector: its architecture is llama",
        str(other): "n_embd = 64",
    }
    for path, reason in cases.items():
        with pytest.raises(StartupError, match=reason):
            Driver(tiny_llama, mmproj=path)


def test_a_projector_beside_the_model_is_found(tmp_path: Path) -> None:
    model = write_llama(tmp_path / "tiny-f32.gguf")
    assert Driver(model).facts.media is None
    path = write_projector(tmp_path / "mmproj-tiny-f16.gguf", vision="mlp")
    media = Driver(model).facts.media
    assert media is not None and (media.path, media.vision, media.audio) == (str(path), True, False)
    assert Driver(model, mmproj_auto=False).facts.media is None
    write_projector(path, vision="mlp", n_text=128)
    driver = Driver(model)
    assert driver.facts.media is None
    (warning,) = driver.warnings
    assert "n_embd = 128" in warning and "--no-mmproj" in warning
    shutil.copy(model, tmp_path / "another.gguf")
    assert Driver(tmp_path / "another.gguf").warnings == [], "it has the other one's name"
