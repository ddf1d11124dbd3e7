"""The documentation says of each family what is measured."""

from __future__ import annotations

import pytest

from tests.unit.chat.formats.matrix import BLOCKS, DOCUMENT, written
from tests.unit.chat.helpers import FOLDER, NAMES


@pytest.mark.parametrize("block", BLOCKS)
def test_the_documentation_is_what_is_measured(block: str) -> None:
    if not NAMES:
        pytest.skip(f"no templates in {FOLDER}")
    assert written(block) == BLOCKS[block](), f"python -m tests.unit.chat.formats.matrix writes {DOCUMENT} anew"
