"""Files that hold the saved state of a prompt. All numbers are little-endian.

    magic              8 bytes
    version            32 bits
    length of the head 32 bits
    head               msgpack, a `Head`
    tokens             32 bits each
    checksum           32 bytes, BLAKE2b of everything above
    state              as the engine gave it
    checksum           32 bytes, BLAKE2b of the state, keyed with the first checksum

So what a file holds is known, and known to be right, without reading its state, and no part goes with that of another
file. A file is written under another name, brought to the disk and renamed: under its own name it is whole.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from io import BufferedReader
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from puna.llama.state import State

MAGIC = b"PUNA\x1akv\n"
VERSION = 1
CHECKSUM = 32
TOKEN = np.dtype("<i4")
START = struct.Struct("<8sII")
MOST_HEAD = 1 << 20
"""Longer heads mean a damaged file."""

TEMPORARY = (".puna-", ".tmp")
"""How the names of files that are being written begin and end."""

Fault = Literal["missing", "foreign", "version", "damaged", "mismatch"]
"""A file that cannot be opened, is none of ours, was written by another version, is not as it was written, or belongs to
another model or other settings."""


class StateFileError(Exception):
    """A file that must not be used; the message says why, as the end of a sentence that begins with its name."""

    def __init__(self, fault: Fault, reason: str) -> None:
        super().__init__(reason)
        self.fault: Fault = fault


class Identity(msgspec.Struct, frozen=True):
    """What a state depends on beside its tokens and the namespace they are cached in."""

    model: str
    """Digest of the model file."""
    context: str
    """The engine's version and those settings that decide what the bytes mean, in words."""


class Head(msgspec.Struct, frozen=True):
    """What a file says of itself before its tokens."""

    identity: Identity
    key: bytes
    """The namespace: the adapters, for instance, that the state was computed with."""
    n_tokens: int
    n_state: int
    """Bytes of the state."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What a file holds beside its state."""

    identity: Identity
    key: bytes
    tokens: tuple[int, ...]
    checksum: bytes
    n_state: int
    n_bytes: int
    """Of the whole file."""


def file_bytes(identity: Identity, n_tokens: int, n_state: int, key: bytes = b"") -> int:
    """How long a file of so many tokens and bytes of state is."""
    head = msgspec.msgpack.encode(Head(identity, key, n_tokens, n_state))
    return START.size + len(head) + TOKEN.itemsize * n_tokens + n_state + 2 * CHECKSUM


def write(path: Path, identity: Identity, tokens: Sequence[int], state: State, key: bytes = b"") -> int:
    """Write a file in place of one of that name; return its length in bytes. Raises `OSError`, and nothing has changed then."""
    head = msgspec.msgpack.encode(Head(identity, key, len(tokens), state.nbytes))
    above = START.pack(MAGIC, VERSION, len(head)) + head + np.asarray(tokens, TOKEN).tobytes()
    checksum = blake2b(above, digest_size=CHECKSUM).digest()
    temporary = path.with_name(secrets.token_hex(8).join(TEMPORARY))
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            for part in (above, checksum, state.data, _checksum_of(state, checksum)):
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):  # what went wrong before is what counts
            temporary.unlink()
        raise
    _sync_folder(path.parent)
    return len(above) + state.nbytes + 2 * CHECKSUM


def read(path: Path, identity: Identity) -> tuple[Contents, State]:
    """What a file holds and its state, all of it verified. Raises `StateFileError`."""
    with _opened(path) as file:
        contents = _contents(file, identity)
        state: State = np.empty(contents.n_state, np.uint8)
        if file.readinto(state.data) != state.nbytes or file.read(CHECKSUM) != _checksum_of(state, contents.checksum):
            raise StateFileError("damaged", "is damaged: its state does not agree with its checksum")
    return contents, state


def read_contents(path: Path, identity: Identity) -> Contents:
    """What a file holds, without reading its state. Raises `StateFileError`."""
    with _opened(path) as file:
        return _contents(file, identity)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BufferedReader]:
    """A plain file: a link could lead anywhere, and a pipe would let us wait for ever."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise StateFileError("foreign", "is not a file")
        with open(descriptor, "rb") as file:
            yield file
    except OSError as error:
        reasons = {errno.ENOENT: "does not exist", errno.ELOOP: "is a link"}
        raise StateFileError("missing", reasons.get(error.errno or 0, f"cannot be read: {error.strerror}")) from error


def _contents(file: BufferedReader, identity: Identity) -> Contents:
    n_file = os.fstat(file.fileno()).st_size
    start = file.read(START.size)
    if len(start) < START.size or not start.startswith(MAGIC):
        raise StateFileError("foreign", "is not a file of saved state")
    _, version, n_head = START.unpack(start)
    if version != VERSION:
        raise StateFileError("version", f"was written by another version (format {version}; here: {VERSION})")
    if n_head > min(MOST_HEAD, n_file):
        raise StateFileError("damaged", "is damaged: its head is cut short")
    raw = file.read(n_head)
    try:
        head = msgspec.msgpack.decode(raw, type=Head)
    except msgspec.MsgspecError as error:
        raise StateFileError("damaged", "is damaged: its head cannot be read") from error
    needed = START.size + n_head + TOKEN.itemsize * head.n_tokens + head.n_state + 2 * CHECKSUM
    if head.n_tokens < 1 or head.n_state < 0 or needed != n_file:
        raise StateFileError("damaged", f"is damaged: it has {n_file} bytes and says {needed}")
    tokens = file.read(TOKEN.itemsize * head.n_tokens)
    checksum = file.read(CHECKSUM)
    if blake2b(start + raw + tokens, digest_size=CHECKSUM).digest() != checksum:
        raise StateFileError("damaged", "is damaged: its tokens do not agree with their checksum")
    if head.identity.model != identity.model:
        raise StateFileError("mismatch", "was made with another model")
    if head.identity.context != identity.context:
        raise StateFileError("mismatch", f"was made with other settings ({head.identity.context}; here: {identity.context})")
    ids = tuple(np.frombuffer(tokens, TOKEN).tolist())
    return Contents(head.identity, head.key, ids, checksum, head.n_state, n_file)


def _checksum_of(state: State, key: bytes) -> bytes:
    return blake2b(state.data, digest_size=CHECKSUM, key=key).digest()


def _sync_folder(folder: Path) -> None:
    """Make a rename last. Some file systems cannot do that for folders; a cache may live with it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
