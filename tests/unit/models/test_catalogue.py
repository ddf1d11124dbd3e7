"""Which model a request means."""

from __future__ import annotations

import pytest

from puna.config import EngineSettings, Settings
from puna.errors import NotFound, StartupError
from puna.models.catalogue import Catalogue, Entry, Job


def entry(name: str, *jobs: Job, favoured: Job | None = None, aliases: tuple[str, ...] = ()) -> Entry:
    return Entry(
        name=name,
        settings=Settings(engine=EngineSettings(model=f"/{name}.gguf")),
        jobs=frozenset(jobs or ("text", "infill")),
        favoured=frozenset([favoured]) if favoured else frozenset(),
        aliases=aliases,
        origin=f"[{name}]",
    )


ALL = Catalogue(
    [
        entry("chat", aliases=("gpt-4", "default")),
        entry("coder", favoured="infill"),
        entry("vectors", "embedding", favoured="embedding"),
        entry("ranks", "rerank"),
    ],
    default="chat",
)


@pytest.mark.parametrize(
    "name, job, found",
    [
        ("chat", "text", "chat"),
        ("gpt-4", "text", "chat"),
        ("coder", "text", "coder"),
        (None, "text", "chat"),
        ("", "text", "chat"),
        (None, "infill", "coder"),
        ("unknown", "infill", "coder"),
        ("text-embedding-3-small", "embedding", "vectors"),
        (None, "rerank", "ranks"),
        (None, "tokens", "chat"),
        ("chat", "embedding", "chat"),
    ],
)
def test_by_name_by_alias_or_by_the_job(name: str | None, job: Job, found: str) -> None:
    assert ALL.choose(name, job).name == found


def test_what_could_be_meant_is_listed() -> None:
    with pytest.raises(NotFound, match="no model called 'gpt-5'; it could be one of: chat, coder"):
        ALL.choose("gpt-5", "text")
    with pytest.raises(NotFound, match=r"no model here can rank documents; there are: a$"):
        Catalogue([entry("a")]).choose(None, "rerank")
    with pytest.raises(NotFound, match="names no model; it could be one of: a, b"):
        Catalogue([entry("a"), entry("b")]).choose(None, "text")
    with pytest.raises(NotFound, match="and 10 more"):
        Catalogue([entry(f"m{i}") for i in range(40)]).choose("x", "text")


def test_a_lone_model_answers_to_any_name() -> None:
    assert Catalogue([entry("only")]).choose("gpt-4o", "text").name == "only"


def test_names_are_given_once() -> None:
    with pytest.raises(StartupError, match="two models called 'a'"):
        Catalogue([entry("a"), entry("a")])
    with pytest.raises(StartupError, match="'a' is a name of 'a' already"):
        Catalogue([entry("a"), entry("b", aliases=("a",))])
    with pytest.raises(StartupError, match="'x' is a name of 'a' already"):
        Catalogue([entry("a", aliases=("x",)), entry("b", aliases=("x",))])
