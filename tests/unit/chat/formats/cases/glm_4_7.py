"""GLM 4.7, without line ends."""

from __future__ import annotations

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.families.glm import glm
from tests.unit.chat.formats.cases.glm import cases
from tests.unit.chat.formats.harness import Family

FAMILY = Family(DescribedFormat(glm("<arg_key>k</arg_key><arg_value>")), cases(""), prompt="<|assistant|></think>")
