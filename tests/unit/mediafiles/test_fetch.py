"""Fetching: what may be asked, and real servers that try to lead elsewhere."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from puna.mediafiles import fetch as fetching
from puna.mediafiles.addresses import is_public
from puna.mediafiles.fetch import FetchPolicy, fetch
from puna.mediafiles.refusal import Refusal

OPEN = FetchPolicy(allowed=True, private=True, most=1_000, seconds=5)


@dataclass
class WebServer:
    """Answers each path with raw bytes, and remembers what came."""

    port: int = 0
    replies: dict[str, bytes] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    connections: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.requests.append(head)
            reply = self.replies.get(head.split(" ")[1])
            if reply is not None:
                writer.write(reply)
                await writer.drain()
            else:
                await asyncio.sleep(30)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def web(**replies: bytes) -> AsyncIterator[WebServer]:
    found = WebServer(replies={f"/{name}": reply for name, reply in replies.items()})
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()


def ok(body: bytes, *headers: str) -> bytes:
    head = "\r\n".join(["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *headers])
    return head.encode() + b"\r\n\r\n" + body


def moved(to: str, status: int = 302) -> bytes:
    return f"HTTP/1.1 {status} Moved\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n".encode()


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def names(monkeypatch: pytest.MonkeyPatch, known: Callable[[str], list[str]]) -> list[str]:
    """Let names stand for addresses; the names that were asked for."""
    asked: list[str] = []

    async def getaddrinfo(host: Any, port: Any, **_: Any) -> list[Any]:
        asked.append(host)
        found = known(host)
        if not found:
            raise socket.gaierror("no such name")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in found]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    return asked


async def test_a_file_is_fetched() -> None:
    async with web(a=ok(b"hello"), b=CHUNKED + b"5\r\nhello\r\n0\r\n\r\n", c=b"HTTP/1.0 200 OK\r\n\r\nhello") as server:
        for name in "abc":
            assert await fetch(f"{server.url}/{name}", OPEN) == b"hello"
        assert "accept-encoding: identity" in server.requests[0].lower()
        assert f"host: 127.0.0.1:{server.port}\r\n" in server.requests[0].lower()


async def test_redirections_are_followed_to_an_end() -> None:
    async with web(a=moved("/b"), b=moved("c", 308), c=ok(b"end"), loop=moved("/loop")) as server:
        assert await fetch(f"{server.url}/a", OPEN) == b"end"
        with pytest.raises(Refusal, match="redirects more than"):
            await fetch(f"{server.url}/loop", OPEN)
        assert server.connections == 3 + fetching.MAX_HOPS


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (ok(bytes(1_001)), "1001 bytes"),
        (CHUNKED + b"7D0\r\n" + bytes(2_000) + b"\r\n", "over 1000 bytes"),
        (b"HTTP/1.0 200 OK\r\n\r\n" + bytes(5_000), "over 1000 bytes"),
        (ok(b"x", "Content-Encoding: gzip"), "compressed"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "status 404"),
        (b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n", "status 302"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab", "could not be fetched"),
        (b"SSH-2.0-OpenSSH_9.9\r\n", "could not be fetched"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000, "could not be fetched"),
        (b"", "could not be fetched"),
        (moved("file:///etc/passwd"), "only http"),
        (moved("ftp://127.0.0.1/x"), "only http"),
        (moved("http://user:word@127.0.0.1/"), "without a user"),
    ],
)
async def test_bad_replies(reply: bytes, words: str) -> None:
    async with web(x=reply) as server:
        with pytest.raises(Refusal, match=words) as caught:
            await fetch(f"{server.url}/x", OPEN)
        assert len(caught.value.reason) < 200 and "SSH" not in caught.value.reason


async def test_slow_servers_are_given_up() -> None:
    async with web() as server:
        with pytest.raises(Refusal, match="within"):
            await fetch(f"{server.url}/silent", FetchPolicy(allowed=True, private=True, seconds=0.1))


LOCAL = ["127.0.0.1", "localhost", "[::1]", "127.1", "2130706433", "0x7f000001", "0.0.0.0", "[::ffff:127.0.0.1]", "[::]"]


@pytest.mark.parametrize("host", LOCAL)
async def test_this_machine_is_not_asked(host: str) -> None:
    async with web(x=ok(b"secret")) as server:
        with pytest.raises(Refusal, match=r"not on the internet|not known|not valid"):
            await fetch(f"http://{host}:{server.port}/x", FetchPolicy(allowed=True))
        assert not server.connections


async def test_without_permission_nothing_is_asked() -> None:
    async with web(x=ok(b"secret")) as server:
        with pytest.raises(Refusal, match="media-fetch"):
            await fetch(f"{server.url}/x", FetchPolicy())
        assert not server.connections


async def test_a_name_for_this_machine_is_seen_through(monkeypatch: pytest.MonkeyPatch) -> None:
    async with web(x=ok(b"secret")) as server:
        names(monkeypatch, lambda _: ["127.0.0.1", "10.0.0.1", "169.254.169.254"])
        with pytest.raises(Refusal, match="not on the internet"):
            await fetch(f"http://nice.example:{server.port}/x", FetchPolicy(allowed=True))
        assert not server.connections


async def test_redirections_to_this_machine_are_seen_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first server is reached as if it were on the internet."""
    async with web(x=ok(b"secret")) as inner:
        for to in (inner.url + "/x", "http://metadata.example/x", "//127.0.0.1/x", f"http://[::1]:{inner.port}/x"):
            async with web(a=moved(to)) as outer:
                with monkeypatch.context() as patch:
                    asked = names(patch, lambda host: {"outer.example": ["93.184.215.14"]}.get(host, ["127.0.0.1"]))
                    connect = asyncio.open_connection

                    async def pinned(host: str, port: int, *, to: int = outer.port, connect: Any = connect, **_: Any) -> Any:
                        assert host == "93.184.215.14" and port == 80
                        reader, writer = await connect("127.0.0.1", to)
                        patch.setattr(writer, "get_extra_info", lambda _: ("93.184.215.14", 80))
                        return reader, writer

                    patch.setattr(asyncio, "open_connection", pinned)
                    with pytest.raises(Refusal, match="not on the internet"):
                        await fetch("http://outer.example/a", FetchPolicy(allowed=True))
                    assert asked[0] == "outer.example" and outer.connections == 1
        assert not inner.connections


async def test_a_name_is_looked_up_once_and_its_address_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that means something else the second time leads nowhere."""
    async with web(x=ok(b"right")) as server:
        answers = iter([["127.0.0.1"], ["127.0.0.9"]])
        asked = names(monkeypatch, lambda _: next(answers))
        connected: list[str] = []
        connect = asyncio.open_connection

        async def watched(host: str, port: int, **options: Any) -> Any:
            connected.append(host)
            return await connect(host, port, **options)

        monkeypatch.setattr(asyncio, "open_connection", watched)
        assert await fetch(f"http://rebinding.example:{server.port}/x", OPEN) == b"right"
        assert asked == ["rebinding.example"] and connected == ["127.0.0.1"]
        assert f"host: rebinding.example:{server.port}" in server.requests[0].lower()


async def test_only_some_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    async with web(x=ok(b"right"), away=moved("http://other.example/x")) as server:
        names(monkeypatch, lambda _: ["127.0.0.1"])
        policy = FetchPolicy(allowed=True, private=True, hosts=("One.example", ".two.example"))
        for host in ("one.example", "ONE.example", "one.example.", "two.example", "a.b.two.example"):
            assert await fetch(f"http://{host}:{server.port}/x", policy) == b"right"
        for host in ("a.one.example", "xone.example", "xtwo.example", "127.0.0.1", "one.example.evil.test"):
            with pytest.raises(Refusal, match="not among"):
                await fetch(f"http://{host}:{server.port}/x", policy)
        with pytest.raises(Refusal, match="not among"):
            await fetch(f"http://one.example:{server.port}/away", policy)


@pytest.mark.parametrize(
    "url",
    ["http://", "http:///x", "http://a b/", "http://host\r\nX: y/", "http://[::1/", "http://host:99999/", "http://" + "x" * 9_000,
     "http://a@b/", "https://\udcff/"],
)  # fmt: skip
async def test_bad_addresses(url: str) -> None:
    with pytest.raises(Refusal, match=r"valid|expected"):
        await fetch(url, OPEN)


PRIVATE = [
    *("127.0.0.1", "127.255.255.254", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "0.0.0.0"),
    *("0.1.2.3", "100.64.0.1", "192.0.0.1", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1"),
    *("240.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "fec0::1", "ff02::1"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::1", "2002:7f00:1::"),
    *("2002:c0a8:101::1", "2001:0:1::1", "2001:db8::1", "100::1", "host", ""),
]
PUBLIC = [
    "8.8.8.8",
    "1.1.1.1",
    "93.184.215.14",
    "172.32.0.1",
    "100.128.0.1",
    "2606:4700::1111",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
]


def test_which_addresses_are_public() -> None:
    assert [address for address in PRIVATE if is_public(address)] == []
    assert [address for address in PUBLIC if not is_public(address)] == []
