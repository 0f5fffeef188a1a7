"""Connections to one HTTP server that are kept for the next request, for many threads.

There is no lock, since what lists do is done whole, so that a process may be forked off at any time; its connections
are its own: it leaves those alone that another process has opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from urllib.parse import quote, urlsplit

from heedful.client.connection import Connection, Stale
from heedful.client.verbs import Reply
from heedful.client.way import Way, way_to


class Connections:
    """The kept connections to the server of an address, of which at most `kept` wait for a request."""

    def __init__(self, url: str, headers: Mapping[str, str], kept: int) -> None:
        self.parts, self.kept = urlsplit(url), kept
        self.headers = {"host": self.parts.netloc.rpartition("@")[2], **headers}
        self.idle: list[Connection] = []

    def exchange(self, method: str, path: str, body: bytes, until: float) -> Reply:
        """What the server answers to a request; it is all over by a time of the monotonic clock."""
        target = self.way.before_path + quote(self.parts.path + path, safe="/%")
        request = f"{method} {target} HTTP/1.1\r\n{self.head}content-length: {len(body)}\r\n\r\n".encode() + body
        kept = self._take()
        if kept is not None:
            try:
                return self._on(kept, request, until)
            except Stale:
                pass  # the server has closed it before it saw the request, as one does that is started again
        return self._on(Connection(self.way, until), request, until)

    def close(self) -> None:
        """Close those that wait; the next request opens one again."""
        while (connection := self._take()) is not None:
            connection.close()

    def _on(self, connection: Connection, request: bytes, until: float) -> Reply:
        try:
            reply, reusable = connection.exchange(request, until)
        except BaseException:  # Ctrl-C too: the server sees that nobody waits for the answer any more
            connection.close()
            raise
        if reusable and len(self.idle) < self.kept:
            self.idle.append(connection)
        else:
            connection.close()
        return reply

    def _take(self) -> Connection | None:
        """The one that was used last, which the server has least reason to have closed."""
        while True:
            try:
                connection = self.idle.pop()
            except IndexError:
                return None
            if connection.usable:
                return connection
            connection.close()

    @cached_property
    def way(self) -> Way:
        """The way to the server; reading the certificates of all authorities takes a while, so it is found once."""
        return way_to(self.parts)

    @cached_property
    def head(self) -> str:
        """The headers of every request."""
        return "".join(f"{name}: {value}\r\n" for name, value in self.headers.items()) + self.way.head
