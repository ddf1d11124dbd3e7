"""`X-Conversation-Id`: a stream goes on when its connection is gone, and can be found again.

    POST ... with X-Conversation-Id: NAME       any streaming route
    GET /v1/stream?conv_id=NAME&from=OFFSET     what it has sent from that byte on, and then what it sends
    DELETE /v1/stream?conv_id=NAME              stop and forget it

`/v1/stream/NAME` is the same, as llama.cpp has it. A new stream under a name ends the one before. Nobody can list streams,
and with API keys each key has names of its own.
"""

from __future__ import annotations

import asyncio
from urllib.parse import parse_qs, unquote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from puna.api.disconnect import disconnected, settle
from puna.errors import InvalidRequest, NotFound, PunaError
from puna.log import logger
from puna.server.asgi import header, reply, reply_error
from puna.server.auth import bearer_token
from puna.server.replay import Key, Recording, Recordings

PATH = "/v1/stream"
MAX_NAME = 256


class ResumableStreams:
    """Middleware. Without the header nothing changes."""

    def __init__(self, app: ASGIApp, recordings: Recordings) -> None:
        self._app = app
        self._recordings = recordings
        self._running: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        name = header(scope, b"x-conversation-id")
        try:
            if path == PATH or path.startswith(PATH + "/"):
                await self._again(scope, receive, send)
            elif name and scope["method"] == "POST":
                await self._record(_key(scope, name), scope, receive, send)
            else:
                await self._app(scope, receive, send)
        except PunaError as error:
            await reply_error(scope, send, error)

    async def _record(self, key: Key, scope: Scope, receive: Receive, send: Send) -> None:
        job = _Job(receive, send)

        async def work() -> None:
            await self._app(scope, job.receive, job.send)

        task = asyncio.create_task(work())
        detached = asyncio.create_task(job.detached.wait())
        try:
            await asyncio.wait({task, detached}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await settle(detached)
            if not job.detached.is_set() and not task.done():  # this very request is being cancelled
                await settle(task)
        if not job.detached.is_set():  # an error, or a reply that is no stream: it went straight to the client
            await job.close()
            await task
            return
        self._recordings.put(key, job.recording)
        self._running.add(task)
        task.add_done_callback(lambda done: self._ended(key, job.recording, done))
        await job.close()
        await send(job.start)
        await play(job.recording, 0, receive, send)

    def _ended(self, key: Key, recording: Recording, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        recording.finish()
        self._recordings.ended(key, recording)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a stream without connection failed", exc_info=error)

    async def _again(self, scope: Scope, receive: Receive, send: Send) -> None:
        query = parse_qs(scope["query_string"].decode("latin-1"))
        name = unquote(scope["path"].removeprefix(PATH).removeprefix("/")) or query.get("conv_id", [""])[0]
        if not name:
            raise InvalidRequest("Field 'conv_id': Field required", param="conv_id")
        key = _key(scope, name)
        if scope["method"] == "DELETE":
            self._recordings.stop(key)
            body = b'{"success":true}'
            await reply(send, 200, [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())], body)
            return
        if scope["method"] != "GET":
            raise InvalidRequest(f"{scope['method']} is not allowed for '{PATH}'")
        recording = self._recordings.get(key)
        if recording is None:
            raise NotFound("there is no stream of this conversation")
        offset = _offset(query.get("from", ["0"])[0], recording)
        headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await play(recording, offset, receive, send)


async def play(recording: Recording, offset: int, receive: Receive, send: Send) -> None:
    """Send a stream from `offset` on, until it ends or the client leaves. One that falls too far behind is cut off."""

    async def produce() -> None:
        at = offset
        while await recording.more(at):
            if at < recording.begin:
                return
            data = recording.since(at)
            at += len(data)
            await send({"type": "http.response.body", "body": data, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    tasks = [asyncio.create_task(produce()), asyncio.create_task(disconnected(receive))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if tasks[0].done():
            tasks[0].result()
    finally:
        await settle(*tasks)


class _Job:
    """One request on its way from being a client's to standing for itself."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._whole = False
        self._gone = asyncio.Event()
        self._watch: asyncio.Task[None] | None = None
        self.recording = Recording()
        self.detached = asyncio.Event()
        self.start: Message = {}

    async def receive(self) -> Message:
        """The body; then that the client has gone, or once the stream stands for itself, that it was stopped."""
        if not self._whole:
            message = await self._receive()
            self._whole = message["type"] != "http.request" or not message.get("more_body", False)
            if self._whole:
                self._watch = asyncio.create_task(self._watch_client())
            return message
        waits = [asyncio.create_task(self.recording.stopped.wait()), asyncio.create_task(self._gone.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if self.detached.is_set():
                await self.recording.stopped.wait()
        finally:
            await settle(*waits)
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """To the recording, if it is a stream."""
        if message["type"] == "http.response.start" and message["status"] == 200 and _is_stream(message):
            self.start = message
            self.detached.set()
        elif self.detached.is_set():
            self.recording.add(message.get("body", b""))
        else:
            await self._send(message)

    async def close(self) -> None:
        """Leave the connection to others."""
        if self._watch is not None:
            await settle(self._watch)

    async def _watch_client(self) -> None:
        await disconnected(self._receive)
        self._gone.set()


def _is_stream(start: Message) -> bool:
    return any(name == b"content-type" and value.startswith(b"text/event-stream") for name, value in start["headers"])


def _key(scope: Scope, name: str) -> Key:
    if len(name) > MAX_NAME or not name.isprintable():
        raise InvalidRequest(f"the name of a conversation has at most {MAX_NAME} printable characters", param="conv_id")
    return bearer_token(header(scope, b"authorization")) or header(scope, b"x-api-key") or "", name


def _offset(text: str, recording: Recording) -> int:
    if not text.isdecimal() or len(text) > 18 or int(text) > recording.end:
        raise InvalidRequest(f"Field 'from': a number of bytes up to {recording.end} is expected", param="from")
    if int(text) < recording.begin:
        raise NotFound(f"the stream is kept from byte {recording.begin} on", param="from")
    return int(text)
