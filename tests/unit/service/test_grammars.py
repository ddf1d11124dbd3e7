"""Preparing constraints in processes that may die of it."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator

import pytest

from puna.errors import InvalidRequest, Unavailable
from puna.grammar.process import Job
from puna.service import grammars
from puna.service.grammars import ProcessPreparer
from puna.types import Constraint

GOOD = Job(Constraint("gbnf", 'root ::= "a"'))


@pytest.fixture
async def preparer() -> AsyncIterator[ProcessPreparer]:
    made = ProcessPreparer(1)
    yield made
    await made.aclose()


async def test_a_good_grammar_is_prepared_and_a_bad_one_refused(preparer: ProcessPreparer) -> None:
    assert isinstance(await preparer.prepare(GOOD), Constraint)
    with pytest.raises(InvalidRequest):
        await preparer.prepare(Job(Constraint("gbnf", "root ::= nothing")))


async def test_a_busy_machine_is_not_the_grammars_fault(preparer: ProcessPreparer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammars, "COMMAND", (sys.executable, "-c", "import time; time.sleep(60)"))
    monkeypatch.setattr(grammars, "PATIENCE", 0.2)
    with pytest.raises(Unavailable):
        await preparer.prepare(GOOD)
    monkeypatch.undo()
    assert isinstance(await preparer.prepare(GOOD), Constraint)


async def test_a_process_that_dies_costs_only_its_grammar(preparer: ProcessPreparer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammars, "COMMAND", (sys.executable, "-c", "import os; os.kill(os.getpid(), 27)"))
    with pytest.raises(InvalidRequest, match="too complex"):
        await preparer.prepare(GOOD)
    monkeypatch.undo()
    assert isinstance(await preparer.prepare(Job(Constraint("gbnf", 'root ::= "b"'))), Constraint)
