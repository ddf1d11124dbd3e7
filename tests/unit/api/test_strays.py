"""Fields that nothing reads are said in the log."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from puna.api import body, strays
from puna.api.native.schema import CompletionRequest
from puna.log import logger


@pytest.fixture(autouse=True)
def said(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(strays, "_said", set())
    monkeypatch.setattr(logger, "propagate", True)
    yield


def lines(caplog: pytest.LogCaptureFixture, fields: dict[str, object]) -> list[tuple[str, str]]:
    caplog.clear()
    with caplog.at_level(logging.DEBUG, logger="puna"):
        body.validate(CompletionRequest, {"prompt": "a", **fields})
    return [(record.levelname, record.getMessage()) for record in caplog.records]


@pytest.mark.parametrize(
    "name, meant", [("max_token", "max_tokens"), ("temprature", "temperature"), ("top-k", "top_k"), ("n_predic", "n_predict")]
)
def test_a_misspelt_field_is_a_warning_once(caplog: pytest.LogCaptureFixture, name: str, meant: str) -> None:
    expected = ("WARNING", f"the field '{name}' of a request is not known and was left out; was '{meant}' meant?")
    assert lines(caplog, {name: 5}) == [expected]
    assert lines(caplog, {name: 5}) == []


def test_other_unknown_fields_are_for_those_who_debug(caplog: pytest.LogCaptureFixture) -> None:
    assert lines(caplog, {"traceparent": 1}) == [("DEBUG", "the field 'traceparent' of a request is not known and was left out")]


def test_known_fields_under_any_name_are_no_news(caplog: pytest.LogCaptureFixture) -> None:
    assert lines(caplog, {"max_tokens": 1, "n_predict": 1, "speculative.n_max": 2, "stream": False}) == []


def test_a_name_cannot_forge_a_line_or_fill_the_log(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strays, "MOST", 3)
    found = lines(caplog, {"a\nb": 1, "x" * 61: 1})
    assert found == [("DEBUG", "the field 'a\\nb' of a request is not known and was left out")]
    assert len(lines(caplog, {f"k{i}": 1 for i in range(9)})) == 2
