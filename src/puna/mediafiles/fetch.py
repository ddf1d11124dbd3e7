"""Files fetched from web servers: every hop checked, connected to the very address that was checked, bounded in size and time.

Nothing of the environment takes part, neither proxies nor cookies nor credentials.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from urllib.parse import SplitResult, urljoin, urlsplit

import h11

from puna.mediafiles.addresses import is_public
from puna.mediafiles.refusal import Refusal

MAX_HOPS = 4
"""Most requests for one file, redirections being followed."""
MAX_URL = 8_192
READ_SIZE = 1 << 16

_REDIRECTS = frozenset([301, 302, 303, 307, 308])
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class FetchPolicy:
    """What may be fetched."""

    allowed: bool = False
    hosts: tuple[str, ...] = ()
    """The only hosts that may be asked; one that begins with a dot stands for all below it. None for any."""
    private: bool = False
    """Whether hosts of private networks, and this machine, may be asked too."""
    most: int = 32 * 1024 * 1024
    """Most bytes of a file."""
    seconds: float = 20.0
    """Longest time for a file, everything included."""


@dataclass(frozen=True)
class _Target:
    url: SplitResult
    host: str
    port: int


async def fetch(url: str, policy: FetchPolicy) -> bytes:
    """The file's bytes. Raises `Refusal`."""
    if not policy.allowed:
        raise Refusal("addresses are not fetched here (the server's --media-fetch allows that); only data: URIs are accepted")
    try:
        return await asyncio.wait_for(_follow(url, policy), policy.seconds)
    except asyncio.TimeoutError as error:
        raise Refusal(f"the file could not be fetched within {policy.seconds:g} s") from error
    except (OSError, h11.ProtocolError, asyncio.IncompleteReadError, UnicodeError) as error:
        raise Refusal(f"the file could not be fetched: {type(error).__name__}") from error


async def _follow(url: str, policy: FetchPolicy) -> bytes:
    for _ in range(MAX_HOPS):
        target = _target(url, policy)
        found = await _get(target, await _addresses(target, policy), policy)
        if isinstance(found, bytes):
            return found
        following = urljoin(url, found)
        if target.url.scheme == "https" and not following.lower().startswith("https:"):
            raise Refusal("the file's server redirects from https to something else")
        url = following
    raise Refusal(f"the file's address redirects more than {MAX_HOPS - 1} times")


def _target(url: str, policy: FetchPolicy) -> _Target:
    """Where to connect for an address. Raises `Refusal`."""
    if len(url) > MAX_URL or any(character <= " " or character == "\x7f" for character in url):
        raise Refusal("the address is not valid")
    try:
        split = urlsplit(url)
        port = split.port or _PORTS.get(split.scheme, 0)
        host = (split.hostname or "").rstrip(".")
        host = host.encode("idna").decode("ascii") if not host.isascii() else host
    except (ValueError, UnicodeError) as error:
        raise Refusal("the address is not valid") from error
    if split.scheme not in _PORTS:
        raise Refusal("only http: and https: addresses can be fetched")
    if not host or "@" in split.netloc:
        raise Refusal("an address with a host, and without a user, is expected")
    if policy.hosts and not any(_covers(one.lower(), host) for one in policy.hosts):
        raise Refusal("this host is not among those that files may be fetched from (the server's --media-host)")
    return _Target(split, host, port)


def _covers(pattern: str, host: str) -> bool:
    return host == pattern or (pattern.startswith(".") and (host.endswith(pattern) or host == pattern[1:]))


async def _addresses(target: _Target, policy: FetchPolicy) -> Sequence[str]:
    """The host's addresses that may be connected to, at least one. Raises `Refusal`."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise Refusal("the host of the address is not known") from error
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    fitting = addresses if policy.private else [address for address in addresses if is_public(address)]
    if not fitting:
        raise Refusal("the host is not on the internet, and others are not asked (the server's --media-fetch-private allows it)")
    return fitting


async def _get(target: _Target, addresses: Sequence[str], policy: FetchPolicy) -> bytes | str:
    """The file's bytes, or the address that a redirection leads to."""
    reader, writer = await _connect(target, addresses)
    try:
        peer = str(writer.get_extra_info("peername")[0])
        if not policy.private and not is_public(peer):
            raise Refusal("the host is not on the internet")
        connection = h11.Connection(h11.CLIENT)
        writer.write(connection.send(_request(target)) or b"")
        writer.write(connection.send(h11.EndOfMessage()) or b"")
        await writer.drain()
        return await _reply(connection, reader, policy)
    finally:
        writer.transport.abort()


async def _connect(target: _Target, addresses: Sequence[str]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    failure: OSError | None = None
    for address in addresses:
        try:
            if target.url.scheme == "https":
                return await asyncio.open_connection(address, target.port, ssl=_tls(), server_hostname=target.host)
            return await asyncio.open_connection(address, target.port)
        except OSError as error:
            failure = error
    raise failure or OSError("no address")


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _request(target: _Target) -> h11.Request:
    host = f"[{target.host}]" if ":" in target.host else target.host
    if target.port != _PORTS[target.url.scheme]:
        host = f"{host}:{target.port}"
    path = (target.url.path or "/") + (f"?{target.url.query}" if target.url.query else "")
    headers = [
        ("host", host),
        ("accept", "*/*"),
        ("accept-encoding", "identity"),
        ("user-agent", "puna"),
        ("connection", "close"),
    ]
    return h11.Request(method="GET", target=_quoted(path), headers=headers)


def _quoted(path: str) -> str:
    return "".join(c if c.isascii() else "".join(f"%{byte:02X}" for byte in c.encode()) for c in path)


async def _reply(connection: h11.Connection, reader: asyncio.StreamReader, policy: FetchPolicy) -> bytes | str:
    parts: list[bytes] = []
    size = 0
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(READ_SIZE))
        elif isinstance(event, h11.Response):
            headers = {name.decode("ascii").lower(): value.decode("latin-1") for name, value in event.headers}
            if event.status_code in _REDIRECTS and "location" in headers:
                return headers["location"]
            _check_head(event.status_code, headers, policy)
        elif isinstance(event, h11.Data):
            parts.append(bytes(event.data))
            size += len(event.data)
            if size > policy.most:
                raise Refusal(f"the file has over {policy.most} bytes")
        elif isinstance(event, h11.EndOfMessage):
            return b"".join(parts)
        elif not isinstance(event, h11.InformationalResponse):
            raise Refusal("the file's server broke off")


def _check_head(status: int, headers: dict[str, str], policy: FetchPolicy) -> None:
    if not 200 <= status < 300:
        raise Refusal(f"the file's server answered with status {status}")
    if headers.get("content-encoding", "identity") != "identity":
        raise Refusal("the file's server sent it compressed, which it was asked not to do")
    length = headers.get("content-length", "")
    if length.isdecimal() and int(length) > policy.most:
        raise Refusal(f"the file has {length} bytes; up to {policy.most} are fetched")
