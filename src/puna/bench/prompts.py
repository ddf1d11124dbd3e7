"""Prompts made of common words, each about one token, so that lengths in tokens are near what they are called."""

from __future__ import annotations

import random
from collections.abc import Sequence

COMMON = (
    "time year people way day man thing woman life child world school state family student group country problem hand part "
    "place case week company system program question work government number night point home water room mother area money "
    "story fact month lot right study book eye job word business issue side kind head house service friend father power "
    "hour game line end member law car city community name president team minute idea body information back parent face "
    "others level office door health person art war history party result change morning reason research girl guy moment "
    "air teacher force education foot boy age policy music market sense nation plan college interest death experience "
    "effect use class control field development role effort rate heart drug show leader light voice wife police mind price "
    "report decision son view relationship town road arm difference value building action season society tax director "
    "position player record paper space ground form event official matter center couple site project activity star table "
    "need court oil situation cost industry figure street image phone data picture practice piece land product doctor wall "
    "patient worker news test movie north love support technology step baby computer type attention film tree source"
)
WORDS = COMMON.split()

QUESTIONS = ("What matters most here?", "Sum this up.", "Name one thing.", "What is missing?", "Who should act first?", "Why?")


def words(n: int, seed: Sequence[int | str]) -> str:
    """`n` words that depend on nothing but the seed; different seeds differ from the first words on."""
    dice = random.Random(repr(tuple(seed)))
    return " ".join(dice.choice(WORDS) for _ in range(n))


def completion(prompt: str, max_tokens: int) -> dict[str, object]:
    """The body of a completion that goes on until `max_tokens`, on servers that know how to ignore the end token."""
    return {"prompt": prompt, "max_tokens": max_tokens, "temperature": 0, "ignore_eos": True}


def chat(messages: Sequence[tuple[str, str]], max_tokens: int, *, ignore_eos: bool = True) -> dict[str, object]:
    """The body of a chat request from (role, text) pairs."""
    listed = [{"role": role, "content": text} for role, text in messages]
    return {"messages": listed, "max_tokens": max_tokens, "temperature": 0, "ignore_eos": ignore_eos}


def edit(n_lines: int, seed: Sequence[int | str]) -> str:
    """A file of numbered lines of about twelve tokens, and the beginning of its copy, in which two words have changed so far."""
    dice = random.Random(repr(tuple(seed)))
    lines = [f"{number}. {' '.join(dice.choice(WORDS) for _ in range(8))}." for number in range(1, n_lines + 1)]
    copied = [*lines[:8]]
    for number in (2, 5):
        copied[number] = copied[number].replace(copied[number].split()[3], "thing", 1)
    listing = "\n".join(lines)
    return f"Original text:\n\n{listing}\n\nThe same text with small corrections:\n\n" + "\n".join(copied) + "\n"
