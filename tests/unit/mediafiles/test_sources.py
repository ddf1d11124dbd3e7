"""Where media may come from, and what is no way to any."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from puna.mediafiles.files import read_file
from puna.mediafiles.refusal import Refusal
from puna.mediafiles.sniff import content_of
from puna.mediafiles.sources import Inline, LocalFile, Remote, parse_source
from tests.unit.mediafiles.samples import moving, quarters, saved, tone

DATA = bytes(range(256))
TEXT = base64.b64encode(DATA).decode()


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        TEXT.rstrip("="),
        base64.urlsafe_b64encode(DATA).decode(),
        "\n".join(TEXT[at : at + 76] for at in range(0, len(TEXT), 76)),
        f"data:image/png;base64,{TEXT}",
        f"DATA:IMAGE/PNG;charset=utf-8;BASE64,{TEXT}",
        f"data:;base64,{TEXT}",
        f"data:audio/wav;base64,{TEXT}",
        f"data:application/octet-stream;base64,{TEXT}",
    ],
)
def test_inline(text: str) -> None:
    source = parse_source(text)
    assert isinstance(source, Inline) and source.decode() == DATA


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "nothing"),
        ("  ", "nothing"),
        ("data:", "not complete"),
        ("data:image/png;base64", "not complete"),
        ("data:image/png,abc", "base64"),
        ("data:" + ";" * 2_000 + "base64,YQ==", "not complete"),
        ("data:text/html;base64,YQ==", "no picture and no sound"),
        ("ftp://host/x.png", "expected"),
        ("javascript:alert(1)", "expected"),
        ("gopher://127.0.0.1/", "expected"),
    ],
)
def test_what_is_no_source(text: str, words: str) -> None:
    with pytest.raises(Refusal, match=words):
        parse_source(text)


@pytest.mark.parametrize("text", ["%%%", "YQ=a", "ü", "Y", "data:image/png;base64,YQ,YQ"])
def test_bad_base64(text: str) -> None:
    source = parse_source(text)
    assert isinstance(source, Inline)
    with pytest.raises(Refusal, match="base64"):
        source.decode()


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("file:///a/b.png", "/a/b.png"),
        ("file://localhost/a/b.png", "/a/b.png"),
        ("file:/a/b.png", "/a/b.png"),
        ("file://b.png", "b.png"),
        ("FILE://c/b%20d.png", "c/b d.png"),
    ],
)
def test_files(text: str, path: str) -> None:
    assert parse_source(text) == LocalFile(path)


def test_addresses() -> None:
    assert parse_source(" HTTPS://host/x ") == Remote("HTTPS://host/x")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "media"
    (folder / "in").mkdir(parents=True)
    (folder / "a.png").write_bytes(b"A")
    (folder / "in" / "b.png").write_bytes(b"B")
    (tmp_path / "secret").write_bytes(b"S")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "up").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    return folder


def test_files_in_the_folder(folder: Path) -> None:
    for path, data in (("a.png", b"A"), ("in/b.png", b"B"), (f"{folder}/in/b.png", b"B"), ("./a.png", b"A")):
        assert read_file(str(folder), path, 10) == data


def test_a_folder_that_is_a_link_itself(folder: Path) -> None:
    link = folder.parent / "elsewhere"
    link.symlink_to(folder)
    assert read_file(str(link), f"{link}/a.png", 10) == read_file(str(link), f"{folder}/a.png", 10) == b"A"


@pytest.mark.parametrize(
    "path",
    ["../secret", "in/../../secret", "link", "up/secret", "{}/secret", "{}/media/../secret", "/etc/passwd", "", ".", "in", "pipe",
     "none.png", "a.png\0", "a.png/x", "..\\secret", "x" * 300, "%2e%2e/secret", "~/x", "/dev/zero", "/proc/self/environ"],
)  # fmt: skip
def test_no_way_out_of_the_folder(folder: Path, path: str) -> None:
    with pytest.raises(Refusal, match="media-path") as caught:
        read_file(str(folder), path.format(folder.parent), 10)
    assert "secret" not in caught.value.reason


def test_the_size_of_files_is_limited(folder: Path) -> None:
    (folder / "large").write_bytes(bytes(11))
    with pytest.raises(Refusal, match="11 bytes"):
        read_file(str(folder), "large", 10)


def test_without_a_folder_there_are_no_files() -> None:
    with pytest.raises(Refusal, match="media-path"):
        read_file("", "/etc/passwd", 10)


def test_contents_are_told_by_their_beginning() -> None:
    for form in ("PNG", "JPEG", "GIF", "WEBP", "BMP", "PPM"):
        assert content_of(saved(quarters(), form)) == "image", form
    assert content_of(moving("WEBP")) == "image"
    for form in ("WAV", "FLAC", "OGG", "MP3", "AIFF"):
        assert content_of(tone(form=form)) == "audio", form
    assert content_of(b"\0\0\0\x18ftypmp42") == content_of(b"RIFF....AVI ") == "video"
    for other in (b"", b"R", b"RIFF", b"RIFF....ABCD", b"hello", b"\xff\xff\xff\xff", b"%PDF"):
        assert content_of(other) == "unknown"
