"""Clients that hold connections: a head, a body, or the reading of an answer that never ends."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from urllib.parse import urlsplit

# One of so many reads slowly; its answer takes work and is megabytes, while heads and bodies cost the server nothing.
READERS = 50
BYTE_EVERY = 0.5
FOR_EVER = 86_400.0
LONG_TEXT = "the river and the bank " * 4000


@contextmanager
def dribble(url: str, model: str, connections: int, seconds: float) -> Iterator[Callable[[], dict[str, list[float]]]]:
    """Hold so many connections from another process for so long; heads and bodies are begun again when they are closed.

    What is yielded waits for the end and tells the seconds for which each was kept. Those who do not read stay until
    the block ends: they cannot see that the server has gone away, and its descriptors must tell it.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_hold, args=(url, model, connections, seconds, theirs), daemon=True)
    process.start()
    try:
        yield ours.recv
    finally:
        process.terminate()
        process.join()


def _hold(url: str, model: str, connections: int, seconds: float, told: Connection) -> None:
    asyncio.run(_all(url, model, connections, seconds, told))


async def _all(url: str, model: str, connections: int, seconds: float, told: Connection) -> None:
    kept: dict[str, list[float]] = {"head": [], "body": []}
    until, readers = time.monotonic() + seconds, connections // READERS
    held = [asyncio.ensure_future(_ask_and_not_read(url, model)) for _ in range(readers)]
    kinds = [("head", "body")[number % 2] for number in range(connections - readers)]
    await asyncio.gather(*(_again_and_again(url, model, kind, until, kept[kind]) for kind in kinds))
    told.send(kept)
    await asyncio.gather(*held)


async def connected(url: str) -> socket.socket:
    """A connection that takes little at a time."""
    parts, connection = urlsplit(url), socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connection, (parts.hostname, parts.port))
    return connection


async def _again_and_again(url: str, model: str, kind: str, until: float, kept: list[float]) -> None:
    while time.monotonic() < until:
        with await connected(url) as connection:
            start = time.monotonic()
            await send_slowly(connection, model, kind)
            kept.append(time.monotonic() - start)


async def _ask_and_not_read(url: str, model: str) -> None:
    """An answer of megabytes that nobody reads."""
    body = json.dumps({"inputs": [LONG_TEXT] * 16}).encode()
    head = f"POST /v1/models/{model}/tokenize HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    loop = asyncio.get_running_loop()
    with await connected(url) as connection:
        await loop.sock_sendall(connection, f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        await asyncio.sleep(FOR_EVER)


async def send_slowly(connection: socket.socket, model: str, kind: str) -> None:
    """A byte now and then, until the server has had enough."""
    head = f"POST /v1/models/{model}/embed HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    start = head + ("x-filler: " if kind == "head" else "content-length: 99999\r\n\r\n")
    loop = asyncio.get_running_loop()
    with suppress(OSError):
        await loop.sock_sendall(connection, start.encode())
        while not await _closed(connection):
            await loop.sock_sendall(connection, b" ")
            await asyncio.sleep(BYTE_EVERY)


async def _closed(connection: socket.socket) -> bool:
    """Whether the server has ended the connection; what it says before is read."""
    with suppress(BlockingIOError):
        while connection.recv(4096):
            continue
        return True
    return False
