"""Which files of a repository are meant."""

from __future__ import annotations

import pytest

from puna.errors import StartupError
from puna.models.repository import RemoteFile, Wanted, choose


def files(*names: str) -> list[RemoteFile]:
    return [RemoteFile(name, 1) for name in names]


SOME = files(
    "README.md", "M-Q8_0.gguf", "M-Q4_K_M.gguf", "M-IQ4_XS.gguf", "M-f16.gguf", "mmproj-M-f16.gguf", "mmproj-M-Q8_0.gguf"
)
SPLIT = files(*(f"big/M-BF16-0000{i}-of-00003.gguf" for i in (3, 1, 2)), "M.Q2_K.gguf")


@pytest.mark.parametrize(
    "text, repo, quant",
    [("a/b", "a/b", ""), (" a/b-c.d_e:Q4_K_M ", "a/b-c.d_e", "Q4_K_M"), ("unsloth/X-GGUF:q8_0", "unsloth/X-GGUF", "q8_0")],
)
def test_what_is_wanted(text: str, repo: str, quant: str) -> None:
    assert Wanted.parse(text) == Wanted(repo, quant)


@pytest.mark.parametrize(
    "text", ["", "a", "a/b/c", "a/b:", "../b", "a/..", "a b/c", "https://x/y/z", "a/b:c/d", "/b", "a" * 200 + "/b"]
)
def test_what_names_no_model(text: str) -> None:
    with pytest.raises(StartupError, match="is no model in a repository"):
        Wanted.parse(text)


@pytest.mark.parametrize(
    "quant, found",
    [("", "M-Q4_K_M.gguf"), ("q8_0", "M-Q8_0.gguf"), ("F16", "M-f16.gguf"), ("IQ4_XS", "M-IQ4_XS.gguf")],
)
def test_the_number_format(quant: str, found: str) -> None:
    chosen = choose(SOME, Wanted("a/b", quant))
    assert [file.path for file in chosen.model] == [found]
    assert chosen.projector is not None and chosen.projector.path == "mmproj-M-f16.gguf"


def test_parts_come_together_and_in_order() -> None:
    chosen = choose(SPLIT, Wanted("a/b", "BF16"))
    assert [file.path for file in chosen.files] == [f"big/M-BF16-0000{i}-of-00003.gguf" for i in (1, 2, 3)]
    assert [file.path for file in choose(SPLIT, Wanted("a/b", "Q2_K")).model] == ["M.Q2_K.gguf"]
    with pytest.raises(StartupError, match="2 of 3 parts"):
        choose([file for file in SPLIT if "00002" not in file.path], Wanted("a/b", "BF16"))


def test_what_is_not_there_is_said_with_what_is() -> None:
    with pytest.raises(StartupError, match=r"no file for 'Q4'; it has: .*M-Q8_0.gguf"):
        choose(SOME, Wanted("a/b", "Q4"))
    with pytest.raises(StartupError, match="no GGUF file"):
        choose(files("model.safetensors", "mmproj-f16.gguf"), Wanted("a/b"))
