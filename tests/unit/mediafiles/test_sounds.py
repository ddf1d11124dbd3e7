"""Sounds: one channel at one rate, whatever they came as."""

from __future__ import annotations

import numpy as np
import pytest

from puna.mediafiles import sounds
from puna.mediafiles.refusal import Refusal
from puna.mediafiles.sounds import decode_sound, seconds_of
from tests.unit.mediafiles.samples import sound, tone


def samples(data: bytes, rate: int = 16_000) -> np.ndarray:
    found = decode_sound(data, rate)
    assert (found.kind, found.width, found.height) == ("audio", 0, 0)
    return np.frombuffer(found.data, "<f4")


def pitch(found: np.ndarray, rate: int) -> float:
    spectrum = np.abs(np.fft.rfft(found * np.hanning(len(found))))
    return float(np.argmax(spectrum) * rate / len(found))


@pytest.mark.parametrize("form", ["WAV", "FLAC", "OGG", "MP3", "AIFF"])
def test_formats(form: str) -> None:
    found = samples(tone(1.0, form=form))
    assert abs(len(found) - 16_000) <= 2_400  # MP3 comes with some silence around it
    assert pitch(found, 16_000) == pytest.approx(440, abs=3)
    assert np.abs(found).max() == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("subtype", ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW"])
def test_kinds_of_samples(subtype: str) -> None:
    assert pitch(samples(tone(0.5, subtype=subtype)), 16_000) == pytest.approx(440, abs=3)


@pytest.mark.parametrize("rate", [8_000, 16_000, 22_050, 44_100, 48_000])
def test_rates(rate: int) -> None:
    found = samples(tone(1.0, rate))
    assert len(found) == pytest.approx(16_000, abs=2)
    assert pitch(found, 16_000) == pytest.approx(440, abs=2)
    assert seconds_of(decode_sound(tone(1.0, rate), 24_000), 24_000) == pytest.approx(1.0, abs=0.001)


def test_channels_are_mixed() -> None:
    found = samples(tone(0.5, channels=2))
    assert np.abs(found).max() == pytest.approx(0.25, abs=0.01)


def test_blocks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    data = tone(0.3, 44_100, channels=3)
    whole = samples(data)
    for block in (3, 100, 4_001):
        monkeypatch.setattr(sounds, "BLOCK", block)
        assert np.allclose(samples(data), whole, atol=1e-5)


def test_silence_is_a_sound() -> None:
    assert not samples(sound(np.zeros(16_000))).any()


def test_loud_samples_are_cut() -> None:
    assert np.abs(samples(sound(np.array([4.0, -9.0], np.float32), subtype="FLOAT"))).max() == 1.0


def test_a_cut_file_is_as_long_as_what_is_left() -> None:
    whole = tone(1.0)
    assert len(samples(whole[: len(whole) // 2])) == pytest.approx(8_000, abs=100)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"this is text in a file with the wrong name", "no sound of a kind"),
        (b"\x1a\x45\xdf\xa3" + bytes(100), "no sound of a kind"),
        (sound(np.zeros(0)), "empty"),
        (b"RIFF\x24\0\0\0WAVE", "damaged|empty"),
        (b"fLaC" + bytes(40), "damaged"),
        (b"OggS" + bytes(40), "damaged"),
        (b"ID3\x04\0\0\0\0\0\0" + bytes(40), "damaged|empty"),
        (sound(np.array([0.0, np.nan], np.float32), subtype="FLOAT"), "no numbers"),
        (sound(np.array([0.0, np.inf], np.float32), subtype="FLOAT"), "no numbers"),
        (sound(np.zeros(10), 400), "samples a second"),
        (sound(np.zeros((10, 40))), "channels"),
    ],
)
def test_what_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(Refusal, match=words):
        decode_sound(data, 16_000)


def test_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sounds, "MAX_SECONDS", 1)
    monkeypatch.setattr(sounds, "BLOCK", 1_000)
    assert len(samples(tone(1.0)))
    with pytest.raises(Refusal, match="longer"):
        decode_sound(tone(1.2), 16_000)


def test_every_cut_of_a_file_is_refused_or_read() -> None:
    for form in ("WAV", "FLAC", "OGG", "MP3"):
        whole = tone(0.1, form=form)
        for end in range(0, len(whole), max(1, len(whole) // 60)):
            try:
                found = decode_sound(whole[:end], 16_000)
            except Refusal:
                continue
            assert len(found.data) % 4 == 0 and found.data
