"""States that were taken apart and put together give exactly the logits that whole ones give."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from puna.engine.tiers import HostTier
from puna.llama.batch import Batch
from puna.llama.context import Context, FloatArray
from puna.llama.model import Model
from puna.llama.state import State
from tests import tiny

TOKENS = [5 + (7 * i) % 300 for i in range(90)]

FORMS = {
    "values turned": (False, "f16", "f16"),
    "values in rows": (True, "f16", "f16"),
    "quantized keys and values": (True, "q8_0", "q8_0"),
    "quantized keys": (False, "q8_0", "f16"),
    "f32": (False, "f32", "f32"),
}
"""Flash attention, and the types of keys and values."""


class Rig:
    """A context of split streams."""

    def __init__(self, path: Path, flash_attention: bool, type_k: str = "f16", type_v: str = "f16") -> None:
        self.model = Model(str(path))
        self.context = Context(
            self.model, n_ctx=1024, n_seq_max=4, n_batch=128, n_ubatch=128, n_threads=1, n_threads_batch=1,
            unified=False, flash_attention=flash_attention, cache_type_k=type_k, cache_type_v=type_v,
        )  # fmt: skip
        self.batch = Batch(128)
        self.decode(0, TOKENS[:2], 0)
        self.shape = self.context.learn_shape(0)
        self.context.drop(0)

    def decode(self, seat: int, tokens: list[int], start: int) -> FloatArray:
        self.batch.clear()
        row = self.batch.add(tokens, start, seat, n_logits=1)
        self.context.decode(self.batch)
        return self.context.logits(row).copy()

    def after(self, state: State, length: int) -> FloatArray:
        """The logits of one more token after a state."""
        assert self.context.load(3, state, length)
        assert self.context.length(3) == length
        logits = self.decode(3, [7], length)
        self.context.drop(3)
        return logits

    def close(self) -> None:
        self.context.close()
        self.model.close()


@pytest.fixture(scope="module")
def wide_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose rows are long enough for quantized cells."""
    return tiny.write_llama(tmp_path_factory.mktemp("wide") / "wide.gguf", n_embd=128, n_head=4, n_head_kv=2)


@pytest.fixture(params=FORMS)
def plain(request: pytest.FixtureRequest, wide_llama: Path) -> Iterator[Rig]:
    rig = Rig(wide_llama, *FORMS[request.param])
    yield rig
    rig.close()


def test_pieces_of_many_conversations_are_as_good_as_whole_states(plain: Rig) -> None:
    """Three conversations that part in two places, kept in a tree; each is then woken at several lengths."""
    chats = [(TOKENS, 0), (TOKENS[:50] + [9] * 20, 50), (TOKENS[:20] + [11, 12] * 10, 20)]
    tier = HostTier(10**8, can_cut=True, shape=plain.shape)
    wholes: list[State] = []
    for seat, (chat, common) in enumerate(chats):
        if common:  # it goes on from what the first one has, so that what they have in common is the same in every bit
            assert plain.context.load(seat, wholes[0], common)
        plain.decode(seat, chat[common:], common)
        wholes.append(plain.context.save(seat))
        tier.put(chat, wholes[-1])
        plain.context.drop(seat)
    assert len(tier) == 5
    for (chat, _), whole in zip(chats, wholes, strict=True):
        for length in (1, 19, 20, 21, 40, len(chat)):
            found = tier.find([*chat[:length], 7])
            assert found is not None and found.length == length
            np.testing.assert_array_equal(plain.after(tier.load(found), length), plain.after(whole, length))


@pytest.mark.parametrize("name", ["tiny_gemma3", "tiny_mamba", "tiny_jamba"])
def test_checkpoints_are_as_good_as_whole_states(name: str, request: pytest.FixtureRequest) -> None:
    rig = Rig(request.getfixturevalue(name), flash_attention=False)
    tier = HostTier(10**8, can_cut=False, shape=rig.shape)
    expected = {}
    start = 0
    for length in (10, 35, 60, 90):
        rig.decode(0, TOKENS[start:length], start)
        whole = rig.context.save(0)
        tier.put(TOKENS[:length], whole)
        expected[length] = rig.after(whole, length)
        start = length
    for length, logits in expected.items():
        found = tier.find([*TOKENS[:length], 7])
        assert found is not None and found.length == length
        np.testing.assert_array_equal(rig.after(tier.load(found), length), logits)
    if name != "tiny_mamba":
        assert tier.n_bytes < sum(len(rig.context.save(0)) for _ in expected)
    rig.close()
