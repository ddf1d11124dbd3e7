"""Models that know nothing of tools."""

from __future__ import annotations

from puna.chat.formats.table import choose_format
from tests.unit.chat.formats.cases import hermes
from tests.unit.chat.formats.harness import Family

CASES = [case for case in hermes.CASES if case.reasoning is None and "think" not in case.raw]

FAMILY = Family(choose_format("{{ messages }}"), CASES[:14])
