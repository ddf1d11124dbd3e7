"""One file a family: raw outputs and the messages that they are.

Each module has `FAMILY`, a `Family` of `tests.unit.chat.formats.harness` with at least 12 cases. `MODULES` lists them.
"""

from __future__ import annotations

from tests.unit.chat.formats.cases import generic, hermes, qwen_xml

MODULES = (hermes, qwen_xml, generic)
