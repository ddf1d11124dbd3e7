"""Pictures and sounds that requests name, decoded on threads of their own; what came inline is remembered for a while."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Literal

from puna.config import ServerSettings
from puna.mediafiles.fetch import FetchPolicy, fetch
from puna.mediafiles.files import read_file
from puna.mediafiles.frames import decode_frames
from puna.mediafiles.pictures import decode_picture
from puna.mediafiles.refusal import Refusal
from puna.mediafiles.sniff import content_of
from puna.mediafiles.sounds import decode_sound
from puna.mediafiles.sources import Inline, LocalFile, Remote, Source, parse_source
from puna.types import Media, MediaFacts

Kind = Literal["image", "audio", "video", "any"]
"""What a part says that it is; `any` where it does not say."""

THREADS = 2
MAX_FILE = 64 * 1024 * 1024
MAX_TOTAL = 160 * 1024 * 1024
"""Most bytes of pixels and samples that one prompt may have: they travel to the engine in one piece."""
MAX_COUNT = 256
REMEMBERED = 128 * 1024 * 1024
"""Bytes of pixels and samples that are kept: a chat brings its pictures again with every turn."""


@dataclass(frozen=True)
class Wanted:
    """A picture or a sound in a request."""

    kind: Kind
    source: str | bytes
    """As text or, if it came with the request, the file itself."""
    field: str
    """Where the source stands."""
    at: str
    """Where the part stands that it belongs to."""


class MediaLoader:
    """Finds, decodes and remembers."""

    def __init__(self, settings: ServerSettings) -> None:
        self._folder = settings.media_path
        self._policy = FetchPolicy(
            allowed=settings.media_fetch or bool(settings.media_hosts),
            hosts=settings.media_hosts,
            private=settings.media_fetch_private,
        )
        self._threads: ThreadPoolExecutor | None = None
        self._kept: OrderedDict[tuple[str, Kind, int], tuple[Media, ...]] = OrderedDict()
        self._n_kept = 0
        self._lock = Lock()

    async def load(self, wanted: Sequence[Wanted], facts: MediaFacts | None) -> list[tuple[Media, ...]]:
        """What each is, several pictures for moving ones. Raises `InvalidRequest` or `NotSupported` that names the field."""
        sources = [self.check(one, facts) for one in wanted]
        if len(wanted) > MAX_COUNT:
            raise Refusal(f"there are more than {MAX_COUNT} pictures and sounds").named(wanted[MAX_COUNT].at)
        found: list[tuple[Media, ...]] = []
        total = 0
        for one, source in zip(wanted, sources, strict=True):
            try:
                found.append(await self._load(one, source, facts or MediaFacts(path="", vision=False, audio=False)))
            except Refusal as refusal:
                raise refusal.named(one.at if refusal.unsupported else one.field) from refusal
            total += sum(len(media.data) for media in found[-1])
            if total > MAX_TOTAL:
                raise Refusal("the pictures and sounds of this request are too large together").named(one.at)
        return found

    def check(self, one: Wanted, facts: MediaFacts | None) -> Source | bytes:
        """The source. Raises `InvalidRequest` for one that is not allowed, `NotSupported` where the model takes no such thing."""
        try:
            source = one.source if isinstance(one.source, bytes) else parse_source(one.source)
            if isinstance(source, Remote) and not self._policy.allowed:
                raise Refusal("addresses are not fetched here (the server's --media-fetch allows that); send a data: URI")
            if isinstance(source, LocalFile) and not self._folder:
                raise Refusal("files of the server's machine cannot be read; its --media-path names a folder for that")
        except Refusal as refusal:
            raise refusal.named(one.field) from refusal
        if facts is None or not (facts.vision or facts.audio):
            raise Refusal("this model reads text only; a model with a projector (--mmproj) is needed", unsupported=True).named(
                one.at
            )
        try:
            _check_kind(one.kind, facts)
        except Refusal as refusal:
            raise refusal.named(one.at) from refusal
        return source

    async def _load(self, one: Wanted, source: Source | bytes, facts: MediaFacts) -> tuple[Media, ...]:
        if isinstance(source, bytes):
            return await self._on_thread(partial(_decode, source, one.kind, facts))
        if isinstance(source, Remote):
            data = await fetch(source.url, self._policy)
            return await self._on_thread(partial(_decode, data, one.kind, facts))
        if isinstance(source, LocalFile):
            return await self._on_thread(lambda: _decode(read_file(self._folder, source.path, MAX_FILE), one.kind, facts))
        return await self._on_thread(partial(self._inline, source, one.kind, facts))

    def _inline(self, source: Inline, kind: Kind, facts: MediaFacts) -> tuple[Media, ...]:
        key = (hashlib.sha256(source.text.encode()).hexdigest(), kind, facts.audio_rate)
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                return found
        decoded = _decode(source.decode(), kind, facts)
        size = sum(len(media.data) for media in decoded)
        with self._lock:
            if key not in self._kept and size <= REMEMBERED // 2:
                self._kept[key] = decoded
                self._n_kept += size
            while self._n_kept > REMEMBERED:
                _, gone = self._kept.popitem(last=False)
                self._n_kept -= sum(len(media.data) for media in gone)
        return decoded

    async def _on_thread(self, work: Callable[[], tuple[Media, ...]]) -> tuple[Media, ...]:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="media")
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        """End the threads; nothing is decoded afterwards."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)


def _check_kind(kind: Kind, facts: MediaFacts) -> None:
    if kind in ("image", "video") and not facts.vision:
        raise Refusal("this model hears, but does not see: its projector takes sound only", unsupported=True)
    if kind == "audio" and not facts.audio:
        raise Refusal("this model sees, but does not hear: its projector takes pictures only", unsupported=True)


def _decode(data: bytes, kind: Kind, facts: MediaFacts) -> tuple[Media, ...]:
    """What the bytes are. Raises `Refusal`."""
    if kind == "any":
        content = content_of(data)
        if content == "unknown":
            raise Refusal("this is neither a picture nor a sound that can be read")
        kind = content
        _check_kind(kind, facts)
    if kind == "image":
        return (decode_picture(data),)
    if kind == "video":
        return decode_frames(data)
    return (decode_sound(data, facts.audio_rate),)
