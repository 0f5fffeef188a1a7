"""A connection to an HTTP server, and one request on it after the other."""

from __future__ import annotations

import os
import queue
import select
import socket
import threading
from typing import Any

from heedful.client.incoming import Incoming, left
from heedful.client.verbs import Reply
from heedful.client.way import Way


class Stale(ConnectionError):
    """The connection was closed before anything of an answer came."""


class Connection:
    """A connection to a server, opened by a time of the monotonic clock."""

    def __init__(self, way: Way, until: float) -> None:
        self.process = os.getpid()
        self.socket = _connected(way.host, way.port, until)
        try:
            # A request is one piece: it need not wait for the next.
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if way.tunnel:
                self._dig(way.tunnel, until)
            if way.secure is not None:
                self.socket.settimeout(left(until))
                self.socket = way.secure.wrap_socket(self.socket, server_hostname=way.name)
        except BaseException:
            self.close()
            raise

    @property
    def usable(self) -> bool:
        """Whether the next request may go here: it is this process's own, and nothing has come unasked, as its end."""
        return self.process == os.getpid() and not _readable(self.socket)

    def exchange(self, request: bytes, until: float) -> tuple[Reply, bool]:
        """What is answered to a request, and whether another may follow; all of it by a time of the monotonic clock."""
        incoming = Incoming(self.socket, until)
        try:
            self._send(request, until)
            return incoming.reply()
        except ConnectionError as error:
            if incoming.begun:
                raise
            raise Stale(str(error)) from error

    def close(self) -> None:
        """Close it; in a process that was forked off, only its own end."""
        self.socket.close()

    def _dig(self, tunnel: bytes, until: float) -> None:
        self._send(tunnel, until)
        status = Incoming(self.socket, until).head().status
        if status != 200:
            raise ConnectionError(f"the proxy answers {status}")

    def _send(self, request: bytes, until: float) -> None:
        rest = memoryview(request)
        while rest:
            self.socket.settimeout(left(until))
            rest = rest[self.socket.send(rest) :]


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
            connected.settimeout(left(until) / (len(addresses) - tried))
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
        addresses = found.get(timeout=left(until))
    except queue.Empty:
        raise TimeoutError from None
    if isinstance(addresses, OSError):
        raise addresses
    return addresses
