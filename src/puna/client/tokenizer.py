"""A model's vocabulary in the server's own process, without its weights."""

from __future__ import annotations

import weakref

from puna.llama.model import Model
from puna.llama.vocab import Vocab


class Tokenizer(Vocab):
    """A vocabulary that keeps the model it belongs to alive, and takes it along when it goes."""

    def __init__(self, model: Model) -> None:
        super().__init__(model.vocab.pointer)
        self._model = model
        # at the end of the process its memory goes anyway
        weakref.finalize(self, model.close).atexit = False


def load_tokenizer(path: str) -> Tokenizer:
    """Read the vocabulary of a GGUF file and look its tokens up, which takes up to a second. Raises `StartupError`."""
    tokenizer = Tokenizer(Model(path, vocab_only=True))
    # Tables that are made on first use, made before there are requests to wait for them.
    tokenizer.piece(0)
    tokenizer.piece(0, special=True)
    tokenizer.is_eog(0)
    return tokenizer
