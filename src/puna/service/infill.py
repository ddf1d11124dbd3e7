"""Prompts for filling in the middle: a text with a gap, and perhaps pieces of other files before it.

    BOS [repo] project [file] name piece [file] name piece ... [file] name [prefix] before [suffix] after [middle]

The tokens for repository and files are left out where the vocabulary has none; pieces are then set apart by a line. What
does not fit is cut: of other files' pieces the oldest ones first, then the text's far ends.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from puna.errors import NotSupported
from puna.service.ports import Tokenizer
from puna.service.prompts import Prompt, tokenize_mixed, tokenize_text

PROJECT = "myproject\n"
THIS_FILE = "filename\n"
SNIPPET = "\n\n--- snippet ---\n\n"

MOST_RESERVED = 512
"""Most tokens that are kept free for the answer; a quarter of a small context."""


class Piece(msgspec.Struct, frozen=True):
    """A part of another file."""

    text: str
    filename: str = "tmp"


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """What lies around the place to be filled."""

    before: Prompt
    line: str = ""
    """What follows `before` directly: the line up to the cursor."""
    after: Prompt
    pieces: tuple[Piece, ...] = ()
    """Of other files, oldest first."""


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """The same in token ids."""

    head: tuple[int, ...]
    """What begins every such prompt."""
    pieces: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    """Marker and text of each."""
    this_file: tuple[int, ...]
    before: Sequence[int]
    after: Sequence[int]


def check_fim(tokenizer: Tokenizer) -> None:
    """Raise `NotSupported` that names the tokens the vocabulary lacks."""
    fim = tokenizer.fim
    missing = [name for name in ("prefix", "suffix", "middle") if getattr(fim, name) < 0]
    if missing:
        raise NotSupported(
            f"this model cannot fill in the middle: its vocabulary has no {' and no '.join(missing)} token; "
            "load a code model that was trained for it"
        )


async def fill_prompt(tokenizer: Tokenizer, gap: Gap, *, n_ctx: int, n_batch: int) -> tuple[int, ...]:
    """Token ids of a prompt that leaves room for an answer in `n_ctx` tokens. Raises `NotSupported`.

    Text around the gap gets at most `n_batch` tokens, so that it is read in one go.
    """
    check_fim(tokenizer)
    return arrange(tokenizer, fit(await _tokenize(tokenizer, gap), n_ctx=n_ctx, n_batch=n_batch))


async def whole_fill_prompt(tokenizer: Tokenizer, before: Prompt, after: str, *, param: str) -> tuple[int, ...]:
    """Token ids of a prompt from which nothing is cut, and which names no files."""
    check_fim(tokenizer)
    parts = Parts(
        head=_bos(tokenizer),
        pieces=(),
        this_file=(),
        before=await _document(tokenizer, before, param=param),
        after=await _document(tokenizer, after, param="suffix"),
    )
    return arrange(tokenizer, parts)


def arrange(tokenizer: Tokenizer, parts: Parts) -> tuple[int, ...]:
    """All of it in order."""
    fim = tokenizer.fim
    pieces = (token for marker, text in parts.pieces for token in (*marker, *text))
    return (*parts.head, *pieces, *parts.this_file, fim.prefix, *parts.before, fim.suffix, *parts.after, fim.middle)


def fit(parts: Parts, *, n_ctx: int, n_batch: int) -> Parts:
    """The same, cut to leave room for an answer. Pure."""
    room = n_ctx - min(n_ctx // 4, MOST_RESERVED)
    window = min(n_batch, room)
    n_markers = len(parts.head) + len(parts.this_file) + 3
    n_before = min(len(parts.before), 3 * (window // 4), max(0, window - n_markers))
    n_after = min(len(parts.after), max(0, window // 4 - n_markers))
    before = parts.before[len(parts.before) - n_before :]
    after = parts.after[:n_after]
    pieces = _newest(parts.pieces, _room_for_pieces(room, window, n_before + n_after + n_markers))
    return Parts(head=parts.head, pieces=pieces, this_file=parts.this_file, before=before, after=after)


def _room_for_pieces(room: int, window: int, n_core: int) -> int:
    """Tokens for other files' pieces.

    They come first in the prompt: if their cut moved at each keystroke, nothing cached could be used again. So in a large
    context what they get does not depend on the text around the gap, in a small one it changes in steps.
    """
    if room >= 2 * window:
        return room - window
    step = max(1, window // 4)
    return max(0, room - -(-n_core // step) * step)


def _newest(
    pieces: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...], room: int
) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    """The last pieces, and of the one before them the end, as far as there is room."""
    kept: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    for marker, text in reversed(pieces):
        room -= len(marker)
        if room <= 0:
            break
        kept.append((marker, text[max(0, len(text) - room) :]))
        room -= len(text)
    return tuple(reversed(kept))


async def _tokenize(tokenizer: Tokenizer, gap: Gap) -> Parts:
    fim = tokenizer.fim
    head = _bos(tokenizer)
    if fim.repo >= 0:
        head += (fim.repo, *_plain(tokenizer, PROJECT))
    this_file = (fim.file, *_plain(tokenizer, THIS_FILE)) if fim.file >= 0 else ()
    pieces = [(_marker(tokenizer, piece), tuple(await _document(tokenizer, piece.text, param=""))) for piece in gap.pieces]
    # One text is one text: a vocabulary that puts a blank before each must not put one before the cursor's line.
    before = gap.before + gap.line if isinstance(gap.before, str) else [*gap.before, *([gap.line] if gap.line else [])]
    return Parts(
        head=head,
        pieces=tuple(pieces),
        this_file=this_file,
        before=await _document(tokenizer, before, param="input_prefix"),
        after=await _document(tokenizer, gap.after, param="input_suffix"),
    )


def _marker(tokenizer: Tokenizer, piece: Piece) -> tuple[int, ...]:
    fim = tokenizer.fim
    if fim.file < 0:
        return _plain(tokenizer, SNIPPET)
    return (fim.file, *_plain(tokenizer, piece.filename + "\n"))


def _bos(tokenizer: Tokenizer) -> tuple[int, ...]:
    return (tokenizer.bos,) if tokenizer.add_bos and tokenizer.bos >= 0 else ()


def _plain(tokenizer: Tokenizer, text: str) -> tuple[int, ...]:
    return tuple(tokenizer.tokenize(text, add_special=False, parse_special=False))


async def _document(tokenizer: Tokenizer, document: Prompt, *, param: str) -> list[int]:
    """Token ids of a document, in which no text stands for a control token, and which has no BOS of its own."""
    if isinstance(document, str):
        return await tokenize_text(tokenizer, document, add_special=False, parse_special=False)
    tokens = await tokenize_mixed(tokenizer, document, add_special=False, parse_special=False, param=param)
    return tokens[1:] if tokens[:1] == [tokenizer.bos] else tokens
