"""The client has a loaded model's methods and answers, keeps order, tries again when told to, and never hangs."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import heedful
from heedful.cli.main import cli
from heedful.client import AsyncClient, Client, ServerError
from heedful.errors import HeedfulError
from heedful.inference.embedder import Embedder
from heedful.inference.translator import Translator

TEXTS = ["the cat sees the dog", "", "我爱北京"] * 7


@pytest.fixture
def client(live: Any) -> Iterator[Client]:
    with Client(live.url, "tiny", at_once=5) as client:
        yield client


def test_vectors_are_those_of_the_loaded_model_in_order(client: Client, tiny: Embedder) -> None:
    np.testing.assert_allclose(client.embed(TEXTS), tiny.embed(TEXTS), atol=2e-6)
    for ours, theirs in zip(client.embed(TEXTS, unit="word"), tiny.embed(TEXTS, unit="word"), strict=True):
        np.testing.assert_allclose(ours.reshape(theirs.shape), theirs, atol=2e-6)
    np.testing.assert_allclose(client.similarity(TEXTS), tiny.similarity(TEXTS), atol=1e-5)
    assert client.embed(TEXTS[:1]).dtype == np.float32


def test_all_other_methods(
    client: Client, live: Any, tiny: Embedder, task_folders: dict[str, Path], tiny_translators: dict[str, Path]
) -> None:
    assert client.fill("the [MASK]", 2)[0]["guesses"][0]["word"] == tiny.fill("the [MASK]", 2)[0].guesses[0].word
    assert client.search(["love"], top=1)[0][0]["text"] == "love"
    assert client.tokenize(["loves"])[0]["tokens"] == ["[CLS]", "love", "##s", "[SEP]"]
    assert client.attention(["loves"])[0]["weights"].shape == (3, 4, 4, 4)
    assert client.score(["the cat"])[0]["tokens"] == 2
    with Client(live.url, "classify") as other:
        said = [one["label"] for one in heedful.load(task_folders["classify"]).predict(["the cat", "love"])]
        assert [one["label"] for one in other.predict(["the cat", "love"])] == said
    with Client(live.url, "en-zh") as other:
        texts = ["the cat", "", "a dog"]
        assert other.translate(texts, beam=2) == heedful.load(tiny_translators["transformer"]).translate(texts, beam=2)


def test_asynchronously_by_many_tasks(live: Any, tiny: Embedder) -> None:
    async def ask() -> list[Any]:
        async with AsyncClient(live.url, "tiny") as client:
            return await asyncio.gather(*(client.embed([text]) for text in TEXTS))

    np.testing.assert_allclose(np.concatenate(asyncio.run(ask())), tiny.embed(TEXTS), atol=2e-6)


def test_refusals_are_errors_with_the_servers_words(client: Client, live: Any) -> None:
    with pytest.raises(ServerError, match=r"there is no layer 99(.|\n)*layers 0 … 3") as told:
        client.embed(["a"], layers=[99])
    assert told.value.status == 422
    with pytest.raises(ServerError, match="no \\[MASK\\]"):
        client.fill("no mask")
    with pytest.raises(HeedfulError, match="a single input"):
        client.embed("one text")
    with pytest.raises(HeedfulError, match="choose one by `model`: tiny or classify"):
        Client(live.url).embed(["a"])
    with pytest.raises(HeedfulError, match=r"write http://127\.0\.0\.1:8000"):
        Client("127.0.0.1:8000")


class Moody(BaseHTTPRequestHandler):
    """A server that says what its list says, one after the other."""

    moods: list[tuple[int, dict[str, str]]]
    asked = 0

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        type(self).asked += 1
        status, headers = self.moods.pop(0) if len(self.moods) > 1 else self.moods[0]
        body = json.dumps({"results": [[1.0]]} if status == 200 else {"error": {"message": "busy"}}).encode()
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def moody() -> Iterator[tuple[str, type[Moody]]]:
    kind = type("OwnMoods", (Moody,), {"asked": 0, "moods": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", kind
    server.shutdown()
    server.server_close()


def test_a_busy_server_is_asked_again_when_it_says_so(moody: tuple[str, type[Moody]]) -> None:
    url, kind = moody
    kind.moods = [(429, {"retry-after": "0"}), (503, {"retry-after": "0"}), (200, {})]
    assert Client(url, "any").embed(["a"]).tolist() == [[1.0]] and kind.asked == 3
    kind.moods, kind.asked = [(429, {"retry-after": "0"}), (200, {})], 0
    with pytest.raises(ServerError, match="busy"):
        Client(url, "any", retry=False).embed(["a"])


def test_the_total_deadline_is_kept(moody: tuple[str, type[Moody]]) -> None:
    url, kind = moody
    kind.moods = [(429, {"retry-after": "3600"})]
    with pytest.raises(ServerError, match="busy"):  # there is no time for that
        Client(url, "any", timeout=1.0).embed(["a"])
    assert kind.asked == 1
    with pytest.raises(HeedfulError, match="cannot be reached"):
        Client("http://127.0.0.1:9", "any", timeout=0.5).embed(["a"])


@pytest.fixture
def dribbling() -> Iterator[str]:
    """A server whose answer goes on for ever, a byte at a time."""
    over = threading.Event()

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\nx-filler: ")
            while not over.wait(0.02):
                connection.sendall(b"y")

    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        over.set()


def test_the_deadline_is_one_for_all_that_is_read(dribbling: str) -> None:
    with Client(dribbling, "any", timeout=0.3) as client, pytest.raises(HeedfulError, match="no answer to embed in"):
        client.embed(["a"])

    async def ask() -> None:
        async with AsyncClient(dribbling, "any", timeout=0.3) as client:
            await client.embed(["a"])

    with pytest.raises(HeedfulError, match="no answer to embed in time"):
        asyncio.run(ask())


def test_threads_share_a_client_and_it_opens_again_after_closing(live: Any, tiny: Embedder) -> None:
    client = Client(live.url, "tiny")
    for _ in range(2):
        with client, ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda text: client.embed([text])[0], TEXTS))
        np.testing.assert_allclose(found, tiny.embed(TEXTS), atol=2e-6)


def test_inside_a_running_loop_too(live: Any) -> None:
    async def ask() -> Any:
        with Client(live.url, "tiny") as client:
            return client.tokenize(["love"])

    assert asyncio.run(ask())[0]["tokens"] == ["[CLS]", "love", "[SEP]"]


def test_both_clients_have_the_same_methods_and_those_of_a_loaded_model() -> None:
    def methods(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))}

    assert methods(Client) == methods(AsyncClient)
    loaded = methods(Embedder) | methods(Translator)
    assert {"embed", "similarity", "fill", "predict", "translate", "generate", "score", "attention"} <= loaded
    assert methods(Client) - loaded == {"call", "close", "info", "search", "tokenize"}


def test_importing_it_loads_neither_torch_nor_the_server() -> None:
    code = "import sys, heedful.client; print([m for m in ('torch', 'uvicorn', 'starlette') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("how", [["--clients", "3"], ["--rate", "40"]])
def test_bench_serve_compares_every_answer(live: Any, how: list[str]) -> None:
    result = CliRunner().invoke(
        cli, ["bench", "serve", live.url, "--model", "tiny", "--seconds", "0.5", *how, "--json"]
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["answered"] > 0 and found["wrong_answers"] == 0 and not found["errors"]
    assert found["p50_ms"] <= found["p99_ms"]
