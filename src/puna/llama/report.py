"""Run in a process of its own: what the engine is, and whether it can read a prompt with a model.

    python -m puna.llama.report [MODEL]

Prints one JSON object a line as it finds things out, so that what is known survives a crash in the engine.
"""

from __future__ import annotations

import json
import sys

from puna.errors import StartupError

TRIAL_TOKENS = 8
"""Enough for the matrix kernels, which a single token does not reach."""


def main(arguments: list[str]) -> int:
    """Report on the engine, then on the model if one is named. Returns 1 after printing an `error`."""
    try:
        from puna.llama import library

        library.start()
        _say(engine=library.describe(), accelerator=library.has_accelerator())
        for path in arguments:
            _try_model(path)
    except StartupError as error:
        _say(error=str(error))
        return 1
    return 0


def _try_model(path: str) -> None:
    from puna.llama.batch import Batch
    from puna.llama.context import Context, DecodeError
    from puna.llama.model import Model

    with Model(path) as model:
        _say(model=model.description, decoder=model.has_decoder)
        with Context(
            model, n_ctx=64, n_seq_max=1, n_batch=32, n_ubatch=32, n_threads=1, n_threads_batch=1,
            unified=True, flash_attention=False,
        ) as context:  # fmt: skip
            batch = Batch(TRIAL_TOKENS)
            batch.add(range(TRIAL_TOKENS), 0, 0, n_logits=1)
            try:
                context.decode(batch)
            except DecodeError as error:
                raise StartupError(f"the engine cannot read a prompt with {path}: {error}") from error
            _say(trial="ok")


def _say(**facts: object) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
