"""Frames on a socket: whole at every split, and a clear error for anything else."""

from __future__ import annotations

import os
import socket
import threading

import msgspec
import pytest

from puna.config import EngineSettings
from puna.ipc.channel import HEADER, MAX_FRAME, FrameDecoder, FrameError, WorkerChannel, encode
from puna.ipc.frames import Abort, Failed, Load, Loading, Output, Step, Submit, ToServer, ToWorker
from puna.types import Constraint, EngineStats, Generation, Sampling, SlotState, TokenProb

SENT: list[ToWorker] = [
    Load(EngineSettings(model="x.gguf", n_ctx=7), safe_mode=True),
    Submit(
        id=3,
        generation=Generation(
            prompt=(1, 2, 3), sampling=Sampling(logit_bias=((5, float("-inf")),)), constraint=Constraint("gbnf", "root")
        ),
    ),
    Abort(3),
]
ANSWERED: list[ToServer] = [
    Loading(0.25),
    Step((Output(id=1, tokens=(4,), probs=(TokenProb(4, -0.5, ((4, -0.5),)),)),), EngineStats(n_running=1), (SlotState(id=0),)),
    Failed("😀"),
]


def test_every_single_split() -> None:
    data = b"".join(map(encode, SENT))
    for at in range(len(data) + 1):
        decoder: FrameDecoder[ToWorker] = FrameDecoder(ToWorker)
        assert decoder.feed(data[:at]) + decoder.feed(data[at:]) == SENT
        assert not decoder.partial


def test_one_byte_at_a_time() -> None:
    decoder: FrameDecoder[ToServer] = FrameDecoder(ToServer)
    frames = [frame for byte in b"".join(map(encode, ANSWERED)) for frame in decoder.feed(bytes([byte]))]
    assert frames == ANSWERED


def test_part_of_a_frame_is_partial() -> None:
    decoder: FrameDecoder[ToWorker] = FrameDecoder(ToWorker)
    decoder.feed(encode(Abort(1))[:-1])
    assert decoder.partial


def test_announced_size_over_the_limit() -> None:
    decoder: FrameDecoder[ToWorker] = FrameDecoder(ToWorker)
    with pytest.raises(FrameError, match=str(MAX_FRAME + 1)):
        decoder.feed((MAX_FRAME + 1).to_bytes(HEADER, "little"))


def test_frame_over_the_limit_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("puna.ipc.channel.MAX_FRAME", 100)
    with pytest.raises(FrameError, match="limit"):
        encode(Failed("x" * 100))


@pytest.mark.parametrize(
    "body", [b"", b"\xc1", b"\x00", b"xyz", msgspec.msgpack.encode({"type": "Nobody"}), encode(Loading(1.0))[HEADER:]]
)
def test_garbage_is_an_error_for_good(body: bytes) -> None:
    decoder: FrameDecoder[ToWorker] = FrameDecoder(ToWorker)
    with pytest.raises(FrameError):
        decoder.feed(len(body).to_bytes(HEADER, "little") + body)
    with pytest.raises(FrameError):
        decoder.feed(encode(Abort(1)))


def pair() -> tuple[socket.socket, WorkerChannel]:
    server, worker = socket.socketpair()
    return server, WorkerChannel(worker.detach())


def test_worker_receives_and_sends() -> None:
    server, channel = pair()
    with server:
        server.sendall(b"".join(map(encode, SENT)))
        assert channel.poll(5)
        assert [channel.recv() for _ in SENT] == SENT
        assert not channel.poll()
        channel.send(ANSWERED[1])
        decoder: FrameDecoder[ToServer] = FrameDecoder(ToServer)
        assert decoder.feed(server.recv(65536)) == [ANSWERED[1]]
        channel.close()
        assert server.recv(1) == b""


def test_end_of_the_server_is_none() -> None:
    server, channel = pair()
    server.sendall(encode(Abort(1))[:-1])
    server.close()
    assert channel.recv() is None
    with pytest.raises(OSError):
        for _ in range(3):
            channel.send(Loading(1.0))
    channel.close()


def test_reset_by_the_server_is_none() -> None:
    server, channel = pair()
    channel.send(Loading(1.0))
    # Closing with unread data resets the connection.
    server.close()
    assert channel.recv() is None
    channel.close()


def test_close_wakes_a_reader_on_another_thread() -> None:
    server, channel = pair()
    found: list[ToWorker | None] = []
    reader = threading.Thread(target=lambda: found.append(channel.recv()))
    reader.start()
    channel.close()
    reader.join(5)
    assert found == [None]
    server.close()


def test_channel_is_not_inherited() -> None:
    server, channel = pair()
    assert not os.get_inheritable(channel.fileno())
    channel.close()
    server.close()


def test_frames_from_many_threads_stay_whole() -> None:
    server, channel = pair()
    frames = [Failed(letter * 50_000) for letter in "abcd"]

    def send(frame: ToServer) -> None:
        for _ in range(20):
            channel.send(frame)

    threads = [threading.Thread(target=send, args=(frame,)) for frame in frames]
    for thread in threads:
        thread.start()
    decoder: FrameDecoder[ToServer] = FrameDecoder(ToServer)
    got: list[ToServer] = []
    while len(got) < 80:
        got += decoder.feed(server.recv(1 << 16))
    for thread in threads:
        thread.join()
    assert all(got.count(frame) == 20 for frame in frames)
    channel.close()
    server.close()
