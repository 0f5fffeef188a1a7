"""An answer over HTTP/1.1 as it comes from a socket, all of it by a deadline.

`http.client` reads the head of an answer as that of a mail, which takes longer than all else that a client does.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from heedful.client.verbs import Reply

AT_ONCE = 64 * 1024  # bytes that are read at once: most answers are shorter, and larger buffers come from the system
LONGEST_HEAD = 64 * 1024


class _Head(NamedTuple):
    """The status of an answer, its headers by name, and whether the connection lasts unless it says otherwise."""

    status: int
    headers: Mapping[str, str]
    lasts: bool


class Incoming:
    """What a socket receives by a time of the monotonic clock; each read is given what is left of the time."""

    def __init__(self, receiving: socket.socket, until: float) -> None:
        self.socket, self.until = receiving, until
        self.unread, self.begun = b"", False

    def reply(self) -> tuple[Reply, bool]:
        """The answer, and whether another may follow on this connection; a ConnectionError if it is not whole."""
        head = self.head()
        while head.status < 200:  # it is still to come
            head = self.head()
        content, lasts = self._content(head)
        return Reply(head.status, head.headers.get("retry-after"), content), lasts and head.lasts

    def head(self) -> _Head:
        """The status and the headers of an answer, and no more of it."""
        first, *lines = self._up_to(b"\r\n\r\n").decode("latin-1").split("\r\n")
        version, _, status = first.partition(" ")
        if version not in ("HTTP/1.1", "HTTP/1.0") or not status[:3].isdecimal():
            raise ConnectionError(f"the answer is not HTTP/1.1: {first[:60]!r}")
        named = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in named}
        lasts = version == "HTTP/1.1" and headers.get("connection", "").lower() != "close"
        return _Head(int(status[:3]), headers, lasts)

    def _content(self, head: _Head) -> tuple[bytes, bool]:
        """The body, and whether its end was told by anything but the end of the connection."""
        if head.status in (204, 304):
            return b"", True
        if "chunked" in head.headers.get("transfer-encoding", "").lower():
            return b"".join(self._chunks()), True
        if "content-length" in head.headers:
            return self._exactly(_number(head.headers["content-length"], 10)), True
        parts = [self.unread, *iter(self._received, b"")]
        return b"".join(parts), False

    def _chunks(self) -> Iterator[bytes]:
        while size := _number(self._up_to(b"\r\n").decode("latin-1").partition(";")[0], 16):
            yield self._exactly(size)
            self._up_to(b"\r\n")
        while self._up_to(b"\r\n"):  # headers that come last
            continue

    def _up_to(self, mark: bytes) -> bytes:
        """What comes before a mark, which is read too."""
        while mark not in self.unread:
            if len(self.unread) > LONGEST_HEAD:
                raise ConnectionError("the head of the answer has no end")
            self.unread += self._more()
        found, _, self.unread = self.unread.partition(mark)
        return found

    def _exactly(self, size: int) -> bytes:
        parts, missing = [self.unread[:size]], size - len(self.unread)
        self.unread = self.unread[size:]
        while missing > 0:
            parts.append(self._more(missing))
            missing -= len(parts[-1])
        return b"".join(parts)

    def _more(self, most: int = AT_ONCE) -> bytes:
        received = self._received(most)
        if not received:
            raise ConnectionError("the answer has broken off" if self.begun else "the server has hung up")
        return received

    def _received(self, most: int = AT_ONCE) -> bytes:
        self.socket.settimeout(left(self.until))
        received = self.socket.recv(min(most, AT_ONCE))
        self.begun = self.begun or bool(received)
        return received


def left(until: float) -> float:
    """The seconds until then; a TimeoutError if it is past."""
    seconds = until - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds


def _number(text: str, base: int) -> int:
    with suppress(ValueError):
        if (number := int(text, base)) >= 0:
            return number
    raise ConnectionError(f"the answer is not HTTP/1.1: its length is {text[:60]!r}")
