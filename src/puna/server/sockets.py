"""The socket that the server listens on."""

from __future__ import annotations

import errno
import socket

from puna.errors import StartupError

BACKLOG = 1024


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises `StartupError` that says what is wrong with the address."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise StartupError(f"port {port} on {host} is in use; choose another one with --port") from error
        raise StartupError(f"cannot listen on {host}, port {port}: {error.strerror or error}") from error
