"""Connections that are slow, large, broken or gone: each has its deadline, and others are answered meanwhile."""

from __future__ import annotations

import json
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 30.0
BODY = json.dumps({"inputs": ["the cat"]}).encode()


@pytest.fixture(scope="module")
def brief(start: Any, tiny_folder: Path) -> Iterator[Any]:
    """A server that waits half a second for anything."""
    short = {"header_timeout": 0.5, "body_timeout": 0.5, "send_timeout": 0.5}
    with start((str(tiny_folder),), **short) as live:
        yield live


def connect(live: Any) -> socket.socket:
    host, port = live.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE)


def head(length: int, *more: str) -> bytes:
    lines = ["POST /v1/models/tiny/embed HTTP/1.1", "host: x", "content-type: application/json"]
    return "\r\n".join([*lines, f"content-length: {length}", *more, "", ""]).encode()


def read_all(connection: socket.socket) -> bytes:
    """What comes until the other side closes."""
    found = b""
    try:
        while part := connection.recv(65536):
            found += part
    except ConnectionResetError:
        pass
    return found


def read_answer(connection: socket.socket) -> bytes:
    """One whole answer of a connection that stays open."""
    found = b""
    while b"\r\n\r\n" not in found:
        found += connection.recv(65536)
    head, _, body = found.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65536)
    return head + body


def dribble(connection: socket.socket, data: bytes) -> None:
    """Send a byte now and then, as long as somebody listens."""
    try:
        for byte in data:
            connection.sendall(bytes([byte]))
            time.sleep(0.05)
    except OSError:
        pass


def eventually(true: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not true() and time.monotonic() < until:
        time.sleep(0.01)
    assert true()


def test_a_head_that_dribbles_in_is_cut_off(brief: Any) -> None:
    with connect(brief) as slow:
        threading.Thread(target=dribble, args=(slow, head(9, "x-filler: " + "y" * 900)), daemon=True).start()
        answer = read_all(slow)
    assert answer.startswith(b"HTTP/1.1 408 ") and b"the head of the request did not come in time" in answer


def test_a_body_that_dribbles_in_is_cut_off(brief: Any) -> None:
    with connect(brief) as slow:
        slow.sendall(head(1000))
        threading.Thread(target=dribble, args=(slow, b" " * 900), daemon=True).start()
        answer = read_all(slow)
    assert answer.startswith(b"HTTP/1.1 408 ") and b"the body of the request did not come in time" in answer


def test_a_connection_that_asks_for_nothing_is_closed(brief: Any) -> None:
    with connect(brief) as idle:
        assert read_all(idle) == b""


def test_a_second_request_has_its_own_time(brief: Any) -> None:
    with connect(brief) as kept:
        for _ in range(3):
            kept.sendall(head(len(BODY)) + BODY)
            assert read_answer(kept).startswith(b"HTTP/1.1 200 ")
            time.sleep(0.3)  # all together longer than the time of one
        kept.sendall(b"POST /v1/models/tiny")
        assert read_all(kept).startswith(b"HTTP/1.1 408 ")


def test_a_head_without_end_is_cut_off(brief: Any) -> None:
    with connect(brief) as large:
        large.sendall(b"GET /health HTTP/1.1\r\n" + b"x-filler: " + b"y" * 40_000)
        assert read_all(large).startswith(b"HTTP/1.1 431 ")


def test_an_answer_that_nobody_reads_is_thrown_away(brief: Any) -> None:
    body = json.dumps({"inputs": ["cat " * 100] * 300, "unit": "token"}).encode()  # megabytes of numbers
    with connect(brief) as lazy:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.sendall(head(len(body)) + body)
        connections = brief.running.server.server_state.connections
        eventually(lambda: bool(connections))
        ours = lazy.getsockname()
        eventually(lambda: ours not in {one.client for one in connections})


def test_a_slow_one_does_not_keep_others_waiting(brief: Any) -> None:
    slow = [connect(brief) for _ in range(50)]
    for one in slow:
        one.sendall(head(1000))
    assert brief.ask("tiny", "embed", inputs=["the cat"])
    for one in slow:
        assert read_all(one).startswith(b"HTTP/1.1 408 ")
        one.close()
    eventually(lambda: len(brief.running.server.server_state.connections) <= 1)


def test_an_aborted_body_leaves_nothing_behind(brief: Any) -> None:
    for _ in range(20):
        with connect(brief) as gone:
            gone.sendall(head(1000) + b'{"inputs"')
    eventually(lambda: len(brief.running.server.server_state.connections) <= 1)
    assert brief.ask("tiny", "embed", inputs=["the cat"])


def test_a_request_whose_client_has_gone_is_not_computed(brief: Any) -> None:
    service = brief.running.server.service
    done, go = threading.Semaphore(0), threading.Event()
    before = service.batcher.before

    def hold(alone: bool) -> None:
        done.release()
        assert go.wait(PATIENCE)
        before(alone)

    service.batcher.before, service.batcher.crowded = hold, math.inf  # nobody has all cores
    try:
        busy = [connect(brief) for _ in range(2)]
        for one in busy:  # both threads are held
            one.sendall(head(len(BODY)) + BODY)
            assert done.acquire(timeout=PATIENCE)
        cancelled = service.metrics.cancelled._value.get()
        gone = [connect(brief) for _ in range(10)]
        for one in gone:
            one.sendall(head(len(BODY)) + BODY)
        eventually(lambda: len(service.batcher.queue) == 10)
        for one in gone:
            one.close()
        eventually(lambda: len(service.batcher.queue) == 0)
        eventually(lambda: service.metrics.cancelled._value.get() == cancelled + 10)
    finally:
        service.batcher.before, service.batcher.crowded = before, 0.0
        go.set()
    for one in busy:
        assert read_answer(one).startswith(b"HTTP/1.1 200 ")
        one.close()


def test_a_full_queue_is_told_with_the_time_to_come_again(brief: Any) -> None:
    batcher = brief.running.server.service.batcher
    go, before, speed = threading.Event(), batcher.before, batcher.speed
    held = threading.Semaphore(0)

    def hold(alone: bool) -> None:
        held.release()
        assert go.wait(PATIENCE)
        before(alone)

    bounds = batcher.bounds
    batcher.before, batcher.crowded, batcher.bounds = hold, math.inf, replace(bounds, batch_tokens=1)
    try:
        busy = [connect(brief) for _ in range(3)]
        for one in busy[:2]:
            one.sendall(head(len(BODY)) + BODY)
            assert held.acquire(timeout=PATIENCE)
        batcher.speed = 1.0  # token a second
        busy[2].sendall(head(len(BODY)) + BODY)
        eventually(lambda: len(batcher.queue) == 1)
        answer = brief.http.post("/v1/models/tiny/embed", content=BODY, headers={"content-type": "application/json"})
        assert answer.status_code == 429 and int(answer.headers["retry-after"]) >= 4
    finally:
        batcher.before, batcher.speed, batcher.crowded, batcher.bounds = before, speed, 0.0, bounds
        go.set()
    for one in busy:
        assert read_answer(one).startswith(b"HTTP/1.1 200 ")
        one.close()


def test_what_is_no_http(brief: Any) -> None:
    with connect(brief) as odd:
        odd.sendall(b"\x16\x03\x01 hello\r\n\r\n")
        assert read_all(odd).startswith(b"HTTP/1.1 400 ")
