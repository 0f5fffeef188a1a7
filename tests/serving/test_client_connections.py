"""The connections of a blocking client: kept, opened again, ended in time, and every kind of answer read from them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from heedful.client import Client, ServerError
from heedful.errors import HeedfulError

BODY = json.dumps({"results": [[1.0, 2.0]]}).encode()
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(BODY), BODY)
Act = Callable[[socket.socket, int], None]


class Scripted:
    """A server that does on each connection, counted from 1, what a function says."""

    def __init__(self, act: Act, secure: ssl.SSLContext | None = None) -> None:
        self.act, self.secure, self.opened = act, secure, 0
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"{'https' if secure else 'http'}://localhost:{self.listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self.listening.accept()
                self.opened += 1
                threading.Thread(target=self._serve, args=(connection, self.opened), daemon=True).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        with suppress(OSError):
            if self.secure is not None:
                connection = self.secure.wrap_socket(connection, server_side=True)
            with connection:
                self.act(connection, number)


@pytest.fixture
def scripted() -> Iterator[Callable[..., Scripted]]:
    servers: list[Scripted] = []

    def start(act: Act, secure: ssl.SSLContext | None = None) -> Scripted:
        servers.append(Scripted(act, secure))
        return servers[-1]

    yield start
    for server in servers:
        server.listening.close()


def asked(connection: socket.socket) -> bytes:
    """The next request as it was sent; empty if the client has gone."""
    request = connection.makefile("rb")
    head = b"".join(iter(request.readline, b"\r\n")) if request.peek(1) else b""
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    return head + request.read(int(length or 0))


def answers(connection: socket.socket, number: int) -> None:
    while asked(connection):
        connection.sendall(ANSWER)


def once(answer: bytes) -> Act:
    """A server that answers this, and closes."""

    def act(connection: socket.socket, number: int) -> None:
        asked(connection)
        connection.sendall(answer)

    return act


def test_a_connection_is_kept(scripted: Callable[..., Scripted]) -> None:
    server = scripted(answers)
    with Client(server.url, "any", at_once=1) as client:
        assert client.embed(["a", "b", "c"]).tolist() == [[1.0, 2.0]] * 3
        client.embed(["d"])
        assert server.opened == 1
    client.embed(["closed, and opened again"])
    assert server.opened == 2


def test_of_answers_at_the_same_time_none_is_mistaken_for_another(scripted: Callable[..., Scripted]) -> None:
    def echoes(connection: socket.socket, number: int) -> None:
        while request := asked(connection):
            time.sleep(0.001)
            inputs = json.loads(request[request.index(b"{") :])["inputs"]
            body = json.dumps({"results": inputs}).encode()
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))

    client, found = Client(scripted(echoes).url, "any"), dict[str, list[str]]()

    def ask(own: str) -> None:
        found[own] = [client.call("any", [own])[0] for _ in range(20)]

    threads = [threading.Thread(target=ask, args=(f"text {n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client.close()
    assert found == {f"text {n}": [f"text {n}"] * 20 for n in range(8)}


@pytest.mark.parametrize("reads", [False, True])
def test_a_kept_connection_that_is_closed_is_opened_again(scripted: Callable[..., Scripted], reads: bool) -> None:
    closed = threading.Event()

    def act(connection: socket.socket, number: int) -> None:
        asked(connection)
        connection.sendall(ANSWER)
        if number == 1 and reads:
            asked(connection)  # closed at the very moment in which it is used
        elif number == 1:
            connection.close()
            closed.set()
        else:
            answers(connection, number)

    server = scripted(act)
    client = Client(server.url, "any", retry=False)
    client.embed(["a"])
    assert reads or closed.wait(10)
    assert client.embed(["b"]).tolist() == [[1.0, 2.0]] and server.opened == 2
    client.close()


def test_an_answer_that_breaks_off_is_asked_for_again(scripted: Callable[..., Scripted]) -> None:
    def act(connection: socket.socket, number: int) -> None:
        asked(connection)
        connection.sendall(ANSWER if number % 2 == 0 else ANSWER[:-5])

    server = scripted(act)
    assert Client(server.url, "any").embed(["a"]).tolist() == [[1.0, 2.0]] and server.opened == 2
    with pytest.raises(HeedfulError, match="the answer has broken off"):
        Client(server.url, "any", retry=False).embed(["a"])


PARTS = b"%x\r\n%b\r\n%x;more\r\n%b\r\n0\r\nlast: 1\r\n\r\n" % (5, BODY[:5], len(BODY) - 5, BODY[5:])


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + PARTS,
        b"HTTP/1.1 200 OK\r\n\r\n" + BODY,  # until the end of the connection
        b"HTTP/1.0 200 OK\r\ncontent-length: %d\r\n\r\n" % len(BODY) + BODY,
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + ANSWER,
    ],
)
def test_all_ways_to_say_how_long_an_answer_is(scripted: Callable[..., Scripted], answer: bytes) -> None:
    with Client(scripted(once(answer)).url, "any", retry=False) as client:
        assert client.embed(["a"]).tolist() == [[1.0, 2.0]]
        assert client.embed(["b"]).tolist() == [[1.0, 2.0]]


def test_a_huge_answer(scripted: Callable[..., Scripted]) -> None:
    numbers = np.random.default_rng(0).random((300, 2000), np.float32)
    body = json.dumps({"results": numbers.tolist()}).encode()
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
    with Client(scripted(once(answer)).url, "any", at_once=1000) as client:
        np.testing.assert_array_equal(client.embed(["a"] * 300), numbers)


def test_what_is_not_of_heedful_serve(scripted: Callable[..., Scripted]) -> None:
    page = b"content-type: text/html\r\ncontent-length: 13\r\n\r\n<html></html>"
    with pytest.raises(ServerError, match="status 502") as told:
        Client(scripted(once(b"HTTP/1.1 502 Bad Gateway\r\n" + page)).url, "any").embed(["a"])
    assert told.value.status == 502
    with pytest.raises(HeedfulError, match="not heedful serve"):
        Client(scripted(once(b"HTTP/1.1 200 OK\r\n" + page)).url, "any").embed(["a"])
    with pytest.raises(HeedfulError, match="the answer is not HTTP"):
        Client(scripted(once(b"220 mail ready\r\n\r\n")).url, "any", retry=False).embed(["a"])
    for length in (b"content-length: many", b"content-length: -1", b"transfer-encoding: chunked\r\n\r\nmany"):
        with pytest.raises(HeedfulError, match=r"its length is '(many|-1)'"):
            Client(scripted(once(b"HTTP/1.1 200 OK\r\n%b\r\n\r\n" % length)).url, "any", retry=False).embed(["a"])
    with pytest.raises(HeedfulError, match="the head of the answer has no end"):
        Client(scripted(once(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 100_000)).url, "any", retry=False).embed(["a"])
    for wrong in ("http://", "http://host:port", "ftp://host"):
        with pytest.raises(HeedfulError, match="no address of a server"):
            Client(wrong)
    with pytest.raises(HeedfulError, match="characters that no key has"):
        Client("http://host", api_key="key\n")


def test_key_and_address_are_sent_as_they_are_given(scripted: Callable[..., Scripted]) -> None:
    seen: list[bytes] = []

    def act(connection: socket.socket, number: int) -> None:
        seen.append(asked(connection))
        connection.sendall(ANSWER)

    server = scripted(act)
    Client(f"{server.url}/below/", "my model", api_key="sesame").call("embed", ["我"], top=None, layers=[1])
    line, head = seen[0].split(b"\r\n")[0], seen[0].lower()
    assert line == b"POST /below/v1/models/my%20model/embed HTTP/1.1"
    assert b"\r\nhost: localhost:" in head and b"\r\nauthorization: bearer sesame\r\n" in head
    assert seen[0].endswith('{"inputs":["我"],"layers":[1]}'.encode())


def test_a_body_that_drips_does_not_outlast_the_deadline(scripted: Callable[..., Scripted]) -> None:
    over = threading.Event()

    def act(connection: socket.socket, number: int) -> None:
        asked(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
        while not over.wait(0.02):
            connection.sendall(b"1")

    with pytest.raises(HeedfulError, match="no answer to embed in time"):
        Client(scripted(act).url, "any", timeout=0.3).embed(["a"])
    over.set()


def test_neither_does_a_server_that_does_not_read_nor_a_name_that_nobody_knows(
    scripted: Callable[..., Scripted], monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()
    server = scripted(lambda connection, number: over.wait(60) and None)
    with pytest.raises(HeedfulError, match="no answer to embed in time"):
        Client(server.url, "any", timeout=0.5).embed(["a" * 30_000_000])
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **rest: over.wait(60) and [])
    with pytest.raises(HeedfulError, match="no answer to embed in time"):
        Client("http://host.invalid", "any", timeout=0.3).embed(["a"])
    over.set()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX signals")
def test_a_process_that_is_forked_off_has_connections_of_its_own(scripted: Callable[..., Scripted]) -> None:
    code = """if True:
        import os, sys
        from heedful.client import Client
        client = Client(sys.argv[1], "any")
        client.embed(["a"])
        child = os.fork()
        assert client.embed(["b"]).tolist() == [[1.0, 2.0]]
        if child:
            assert os.waitpid(child, 0)[1] == 0
            client.embed(["c"])
    """
    server = scripted(answers)
    subprocess.run([sys.executable, "-W", "error", "-c", code, server.url], check=True)
    assert server.opened == 2


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs POSIX signals")
def test_ctrl_c_ends_a_call_and_the_server_sees_it(scripted: Callable[..., Scripted]) -> None:
    gone = threading.Event()

    def act(connection: socket.socket, number: int) -> None:
        asked(connection)
        if number == 1:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            if not asked(connection):
                gone.set()
        else:
            connection.sendall(ANSWER)

    client = Client(scripted(act).url, "any")
    with pytest.raises(KeyboardInterrupt):
        client.embed(["a"])
    assert gone.wait(10) and client.embed(["b"]).tolist() == [[1.0, 2.0]]


@pytest.fixture
def certified(tmp_path: Path) -> tuple[ssl.SSLContext, str]:
    """What a server needs to be localhost, and the file by which it is trusted."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    made += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True)
    secure = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    secure.load_cert_chain(certificate, key)
    return secure, str(certificate)


def test_https(
    scripted: Callable[..., Scripted], certified: tuple[ssl.SSLContext, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = scripted(answers, certified[0])
    with pytest.raises(HeedfulError, match="certificate verify failed"):
        Client(server.url, "any", retry=False).embed(["a"])
    monkeypatch.setenv("SSL_CERT_FILE", certified[1])
    with Client(server.url, "any", retry=False) as client:
        client.embed(["a"])
        opened = server.opened
        assert client.embed(["b"]).tolist() == [[1.0, 2.0]] and server.opened == opened


def test_a_proxy_of_the_environment(
    scripted: Callable[..., Scripted], certified: tuple[ssl.SSLContext, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bytes] = []

    def stands_between(connection: socket.socket, number: int) -> None:
        seen.append(asked(connection))
        if seen[-1].startswith(b"CONNECT"):
            connection.sendall(b"HTTP/1.1 200 Established\r\n\r\n")
            connection = certified[0].wrap_socket(connection, server_side=True)
            seen.append(asked(connection))
        connection.sendall(ANSWER)

    proxy = scripted(stands_between).url.removeprefix("http://")
    monkeypatch.setenv("http_proxy", f"http://me:my%20word@{proxy}")
    monkeypatch.setenv("https_proxy", proxy)
    monkeypatch.setenv("SSL_CERT_FILE", certified[1])
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    for url in ("http://far.invalid:81", "https://localhost"):
        assert Client(url, "any", retry=False).embed(["a"]).tolist() == [[1.0, 2.0]]
    plain, tunnel, within = [request.split(b"\r\n") for request in seen]
    assert plain[0] == b"POST http://far.invalid:81/v1/models/any/embed HTTP/1.1" and b"host: far.invalid:81" in plain
    assert b"proxy-authorization: Basic bWU6bXkgd29yZA==" in plain
    assert tunnel[0] == b"CONNECT localhost:443 HTTP/1.1" and within[0] == b"POST /v1/models/any/embed HTTP/1.1"
    near = scripted(answers).url.replace("localhost", "127.0.0.1")
    assert Client(near, "any").embed(["a"]).tolist() == [[1.0, 2.0]] and len(seen) == 3
