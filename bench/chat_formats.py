"""What reading a turn costs: microseconds a token, family by family.

    PYTHONPATH=src:. python bench/chat_formats.py [tokens]

Each family reads a long text, long thoughts, a call with a long string, and many calls, in pieces of four characters, which
is what a token has on average, and once more twice as long: time that grows faster than the text shows. It is time of the
processor, so that a busy machine changes little.
"""

from __future__ import annotations

import sys
import time

from tests.unit.chat.formats.cases import MODULES
from tests.unit.chat.formats.harness import Family, plan

PIECE = 4


def outputs(family: Family, n: int) -> dict[str, str]:
    """Long outputs of a family, made from its case of a single call."""
    size = n * PIECE
    case = next(case for case in family.cases if case.name == "call")
    call, thoughts = case.raw, plan(family.format, case).thinking
    text = "The quick brown fox, <b>jumps</b> over {the} [lazy] dog.\n"
    text = (text * (size // len(text) + 1))[:size]
    return {
        "text": text,
        **({"thoughts": thoughts.begin + text} if thoughts else {}),
        "string": call.replace("Paris", ("Paris is a city. " * (size // 17 + 1))[:size]),
        "calls": call * (size // len(call) + 1),
    }


def cost(family: Family, raw: str) -> float:
    """Microseconds a token."""
    case = next(case for case in family.cases if case.name == "call")
    pieces = [raw[at : at + PIECE] for at in range(0, len(raw), PIECE)]
    best = float("inf")
    for _ in range(3):
        parser = plan(family.format, case).parser()
        begin = time.process_time()
        for piece in pieces:
            parser.feed(piece)
        parser.finish()
        best = min(best, time.process_time() - begin)
    return best / len(pieces) * 1e6


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    print(f"microseconds a token at {n} tokens, and at {2 * n}")
    for module in MODULES:
        name = module.__name__.rsplit(".", 1)[-1]
        family: Family = module.FAMILY
        once, twice = outputs(family, n), outputs(family, 2 * n)
        figures = [f"{kind} {cost(family, raw):5.1f} {cost(family, twice[kind]):5.1f}" for kind, raw in once.items()]
        print(f"{name:16}", "   ".join(figures), flush=True)


if __name__ == "__main__":
    main()
