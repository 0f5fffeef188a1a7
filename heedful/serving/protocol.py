"""Deadlines of a connection, each for the whole of something and not for each read.

uvicorn knows none for the head or body of a request, nor for a client that does not read its answer: whoever sends a
byte now and then could hold a connection for ever. This protocol adds them, and a limit on the size of the head.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEAD_BYTES = 32 * 1024


@dataclass(frozen=True)
class Deadlines:
    """Seconds for the head of a request, its body, and for reading the answer."""

    header: float = 5.0
    body: float = 10.0
    send: float = 10.0


class DeadlineProtocol(HttpToolsProtocol):
    """uvicorn's protocol with a timer: it runs while the client has something to do."""

    deadlines = Deadlines()

    def __init__(self, *args: Any, **rest: Any) -> None:
        super().__init__(*args, **rest)
        self.timer: asyncio.TimerHandle | None = None
        self.sending: asyncio.TimerHandle | None = None
        self.in_head = True
        self.head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A new connection has to send its first head in time."""
        super().connection_made(transport)
        self._expect(self.deadlines.header)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timers with the connection."""
        self._expect(None)
        if self.sending is not None:
            self.sending.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count the bytes of a head; its time runs from its first byte."""
        if self.in_head:
            self.head_bytes += len(data)
            if self.timer is None:
                self._expect(self.deadlines.header)
        super().data_received(data)
        if self.in_head and self.head_bytes > MOST_HEAD_BYTES and not self.transport.is_closing():
            self._refuse(431, "the head of the request is too large")

    def on_headers_complete(self) -> None:
        """Now the body has its time."""
        self.in_head, self.head_bytes = False, 0
        self._expect(self.deadlines.body)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """All was sent: now it is our turn."""
        self.in_head = True
        self._expect(None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """What is not read in time is thrown away."""
        super().on_response_complete()
        if self.transport.get_write_buffer_size():
            self._watch_sending()

    def pause_writing(self) -> None:
        """The client reads too slowly: its time begins."""
        super().pause_writing()
        self._watch_sending()

    def _watch_sending(self) -> None:
        if self.sending is None:
            self.sending = self.loop.call_later(self.deadlines.send, self._unread)

    def _unread(self) -> None:
        self.sending = None
        if self.transport.get_write_buffer_size():
            self.transport.abort()

    def _expect(self, seconds: float | None) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.timer = None if seconds is None else self.loop.call_later(seconds, self._too_slow)

    def _too_slow(self) -> None:
        self.timer = None
        if self.transport.is_closing():
            return
        if self.cycle is not None and not self.in_head and self.cycle.response_started:
            self.transport.abort()  # refused already, and still sending
        elif self.in_head and not self.head_bytes:
            self.transport.close()  # a connection that has asked for nothing
        else:
            self._refuse(408, f"the {'head' if self.in_head else 'body'} of the request did not come in time")

    def _refuse(self, status: int, message: str) -> None:
        """Answer by hand what never became a request."""
        told = {"error": {"status": status, "code": "too_slow" if status == 408 else "too_large", "message": message}}
        body = json.dumps(told).encode()
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


def with_deadlines(deadlines: Deadlines) -> type[DeadlineProtocol]:
    """The protocol with these deadlines, as uvicorn wants it: a class."""
    return type("Protocol", (DeadlineProtocol,), {"deadlines": deadlines})
