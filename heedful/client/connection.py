"""A connection to an HTTP server, and one request on it after the other.

There is a deadline for all of an exchange. A socket has a timeout for each read only, and a server that sends a byte
now and then would be waited for without end, so that each read is given what is left of the time.
"""

from __future__ import annotations

import io
import os
import queue
import select
import socket
import ssl
import threading
import time
from http.client import HTTPException, HTTPResponse, IncompleteRead
from typing import Any

from heedful.client.verbs import Reply

BUFFER = 64 * 1024  # bytes that are read at once; most answers are shorter


class Stale(ConnectionError):
    """The connection was closed before anything of an answer came."""


class Connection:
    """A connection, opened by a time of the monotonic clock; secure if there is a context for it."""

    def __init__(self, host: str, port: int, until: float, secure: ssl.SSLContext | None = None) -> None:
        self.process = os.getpid()
        self.socket = _connected(host, port, until)
        # A request is one piece: it need not wait for the next.
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if secure is not None:
            self.socket.settimeout(_left(until))
            self.socket = secure.wrap_socket(self.socket, server_hostname=host)

    @property
    def usable(self) -> bool:
        """Whether the next request may go here: it is this process's own, and nothing has come unasked, as its end."""
        return self.process == os.getpid() and not _readable(self.socket)

    def exchange(self, request: bytes, until: float) -> tuple[Reply, bool]:
        """What is answered to a request, and whether another may follow."""
        incoming = _Incoming(self.socket, until)
        try:
            self._send(request, until)
            with HTTPResponse(incoming) as response:  # type: ignore[arg-type]
                response.begin()
                content = response.read()
        except ConnectionError as error:
            if incoming.begun:
                raise
            raise Stale(str(error)) from error
        except IncompleteRead as error:
            raise ConnectionError("the answer has broken off") from error
        except HTTPException as error:
            raise ConnectionError(f"the answer is not HTTP: {error!r}") from error
        return Reply(response.status, response.headers["retry-after"], content), not response.will_close

    def close(self) -> None:
        """Close it; in a process that was forked off, only its own end."""
        self.socket.close()

    def _send(self, request: bytes, until: float) -> None:
        rest = memoryview(request)
        while rest:
            self.socket.settimeout(_left(until))
            rest = rest[self.socket.send(rest) :]


class _Incoming(io.RawIOBase):
    """What a socket receives by a certain time, for `HTTPResponse`, to which it is the socket."""

    def __init__(self, receiving: socket.socket, until: float) -> None:
        self.socket, self.until, self.begun = receiving, until, False

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self, BUFFER)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self.socket.settimeout(_left(self.until))
        count = self.socket.recv_into(buffer)
        self.begun = self.begun or count > 0
        return count


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _readable(connected: socket.socket) -> bool:
    if not hasattr(select, "poll"):  # on Windows, where `select` takes any number of a socket
        return bool(select.select([connected], [], [], 0)[0])
    poll = select.poll()
    poll.register(connected, select.POLLIN)
    return bool(poll.poll(0))


def _connected(host: str, port: int, until: float) -> socket.socket:
    """Connect to the first of a host's addresses that answers; each has its share of the time that is left."""
    error: OSError = TimeoutError()
    addresses = _addresses(host, port, until)
    for tried, (family, kind, protocol, _, address) in enumerate(addresses):
        connected = socket.socket(family, kind, protocol)
        try:
            connected.settimeout(_left(until) / (len(addresses) - tried))
            connected.connect(address)
        except BaseException as failed:
            connected.close()
            if not isinstance(failed, OSError):
                raise
            error = failed
        else:
            return connected
    raise error


def _addresses(host: str, port: int, until: float) -> list[Any]:
    """The addresses of a host; asked for in a thread, since nothing ends the asking when the time is over."""
    found: queue.SimpleQueue[list[Any] | OSError] = queue.SimpleQueue()

    def ask() -> None:
        try:
            found.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except OSError as error:
            found.put(error)
        except UnicodeError as error:  # of a name that is none
            found.put(OSError(str(error)))

    threading.Thread(target=ask, daemon=True).start()
    try:
        addresses = found.get(timeout=_left(until))
    except queue.Empty:
        raise TimeoutError from None
    if isinstance(addresses, OSError):
        raise addresses
    return addresses
