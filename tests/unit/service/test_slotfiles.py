"""Names of slot files stay inside their folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puna.errors import InvalidRequest
from puna.service.slotfiles import slot_file

BAD = ("../x", "/etc/x", "a/b", "a\u0000b", "..\\x", "CON", "con.txt", "LPT1", "", ".", "..", "a" * 300, "é" * 128, ".hidden",
       "x.", " x", "a:b", "a\nb", "a*", "\ud800", "\u0085")  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidRequest, match="Invalid filename") as caught:
        slot_file("/srv/slots", name)
    assert caught.value.param == "filename"
    caught.value.message.encode()


@pytest.mark.parametrize("name", ["slot1.bin", "a b", "é.kv", "x..y", "console", "a" * 255])
def test_plain_names_are_files_of_the_folder(name: str) -> None:
    assert slot_file("/srv/slots", name) == Path("/srv/slots") / name


@given(st.text(max_size=20))
def test_whatever_is_taken_is_in_the_folder(name: str) -> None:
    try:
        path = slot_file("/srv/slots", name)
    except InvalidRequest:
        return
    assert path.resolve().parent == Path("/srv/slots").resolve()
