"""Hostile templates end soon, stay small, reach nothing, and are refused in few words."""

from __future__ import annotations

import resource
import sys
import time

import pytest

from puna.chat import ChatTemplate, probe
from puna.errors import InvalidRequest
from tests.unit.chat.attacks import ATTACKS, ESCAPES
from tests.unit.chat.helpers import made

MESSAGES = [{"role": "user", "content": "hi"}]


def peak_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def attack(source: str, seconds: float) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        ChatTemplate(source, bos_token="", eos_token="", seconds=seconds).render(MESSAGES)
    return caught.value


@pytest.mark.parametrize("name", ATTACKS)
def test_attack_is_stopped_in_time_and_memory(name: str) -> None:
    before, start = peak_bytes(), time.thread_time()
    error = attack(ATTACKS[name], seconds=0.2)
    assert time.thread_time() - start < 5  # far from what it would take unstopped, whatever else runs here
    assert peak_bytes() - before < 100_000_000
    assert len(error.message) < 300


def test_finding_out_what_a_slow_template_takes_ends_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "SECONDS", 0.3)
    template = ChatTemplate(ATTACKS["nested loops"], bos_token="", eos_token="", seconds=0.2)
    prober = probe.Prober(template)
    assert prober.attempt(MESSAGES) is None and prober.attempt(MESSAGES) is None
    monkeypatch.setattr(template, "render", lambda *_: "never called")
    assert prober.attempt(MESSAGES) is None
    assert probe.Prober(template).attempt(MESSAGES) == "never called"


def test_default_time_limit_is_under_two_seconds() -> None:
    start = time.thread_time()
    with pytest.raises(InvalidRequest, match="takes too long"):
        made(ATTACKS["nested loops"]).render(MESSAGES)
    assert time.thread_time() - start < 2


@pytest.mark.parametrize("name", ESCAPES)
def test_escape_is_refused(name: str) -> None:
    assert len(attack(ESCAPES[name], seconds=1).message) < 300


def test_messages_are_unchanged_after_an_attempt_to_change_them() -> None:
    messages = [{"role": "user", "content": "hi"}]
    for change in ("messages.append(1)", "messages[0].update(a=1)", "messages[0].clear()", "messages.pop()"):
        with pytest.raises(InvalidRequest):
            made("{{ " + change + " }}").render(messages)
    assert messages == [{"role": "user", "content": "hi"}]


def test_a_long_honest_conversation_is_within_the_limits() -> None:
    source = (
        "{% set ns = namespace(text='') %}{% for m in messages %}{% set ns.text = m.content ~ '\n' %}"
        "{{ '<' + m.role + '>' + ns.text.strip() + m.content.split('</think>')[-1][:0] }}{% endfor %}"
    )
    words = "lorem ipsum é 漢字 " * 500
    messages = [{"role": "user", "content": words} for _ in range(500)]
    assert made(source).render(messages) == ("<user>" + words.strip()) * 500


def test_renders_do_not_share_an_allowance() -> None:
    template = made("{{ ('x' * 10**7)|length }}")
    assert [template.render(MESSAGES) for _ in range(5)] == ["10000000"] * 5
