"""A grammar that cannot be used is refused in time, and never means free text."""

from __future__ import annotations

import pytest

from tests.e2e.checks import is_sound
from tests.e2e.server import Server


@pytest.mark.parametrize(
    "grammar",
    [
        "answer ::= 'yes'",
        'root ::= "a',
        "root ::= missing",
        "root ::= [",
        "]",
        "root ::= root",
        'root ::= root "a"',
        "root ::= " + "(" * 60_000 + '"a"' + ")" * 60_000,
        "\n".join(f"r{i} ::= r{i + 1}" for i in range(5000)) + '\nr5000 ::= "a"\nroot ::= r0',
        'root ::= "' + "a" * 2_000_000 + '"',
    ],
    ids=["no-root", "unclosed", "undefined", "bracket", "junk", "self", "left-recursion", "nested", "chain", "huge"],
)
def test_a_bad_or_hostile_grammar_is_answered_in_time(tiny_server: Server, grammar: str) -> None:
    for stream in (False, True):
        body = {"prompt": "x", "n_predict": 4, "grammar": grammar, "stream": stream}
        reply = tiny_server.post("/completion", body, timeout=5)
        assert reply.status_code in (200, 400), reply.text[:500]
        if reply.status_code == 400:
            assert is_sound(reply)
    tiny_server.assert_alive()


@pytest.mark.parametrize("grammar", ["answer ::= 'yes'", 'root ::= "a', "root ::= missing", "root ::= ["])
def test_a_grammar_that_does_not_parse_never_means_free_text(tiny_server: Server, grammar: str) -> None:
    reply = tiny_server.post("/completion", {"prompt": "x", "n_predict": 4, "grammar": grammar})
    assert is_sound(reply, statuses=(400,))
    assert reply.json()["error"]["param"] == "grammar"
