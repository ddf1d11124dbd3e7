"""Every family's format, held to its cases."""

from __future__ import annotations

import pytest

from tests.unit.chat.formats.cases import MODULES
from tests.unit.chat.formats.harness import (
    Case,
    Family,
    check_grammar,
    check_splits,
    check_truncated,
    check_walks,
    check_whole,
)

FAMILIES = [pytest.param(module.FAMILY, id=module.__name__.rsplit(".", 1)[-1]) for module in MODULES]
ALL = [
    (module.FAMILY, case, f"{module.__name__.rsplit('.', 1)[-1]}-{case.name}")
    for module in MODULES
    for case in module.FAMILY.cases
]
CASES = [pytest.param(family, case, id=name) for family, case, name in ALL]
WELL_FORMED = [pytest.param(family, case, id=name) for family, case, name in ALL if case.well_formed]


@pytest.mark.parametrize(("family", "case"), CASES)
def test_output_is_read_as_the_message_it_is(family: Family, case: Case) -> None:
    check_whole(family.format, case)
    check_splits(family.format, case)


@pytest.mark.parametrize(("family", "case"), CASES)
def test_output_that_is_cut_off_gives_the_beginning_of_the_message(family: Family, case: Case) -> None:
    check_truncated(family.format, case)


@pytest.mark.parametrize(("family", "case"), WELL_FORMED)
def test_the_grammar_takes_what_is_well_formed(family: Family, case: Case) -> None:
    check_grammar(family.format, case)


@pytest.mark.parametrize("control", [False, True], ids=["text", "control-tokens"])
@pytest.mark.parametrize("family", FAMILIES)
def test_what_the_grammar_makes_up_is_read_as_calls(family: Family, control: bool) -> None:
    check_walks(family, control=control, n=3)


@pytest.mark.parametrize("family", FAMILIES)
def test_there_are_cases_enough(family: Family) -> None:
    assert len(family.cases) >= 12
    assert len({case.name for case in family.cases}) == len(family.cases)
