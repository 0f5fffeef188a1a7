"""Which HTTP server for `heedful serve`: what each of three costs a request, and whether it lets slow clients hold on.

    python benchmarks/http_servers.py [--servers PYTHON]

The same application answers under uvicorn (httptools, uvloop), hypercorn and granian: it reads a body of JSON and gives
back a vector of 384 numbers, and nothing is computed. `wrk` asks with 64 connections, in turns. Then a head and a body
are sent to each, a byte twice a second, for half a minute at most. PYTHON is one in which all three are installed. Run
it on an idle machine.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from results_file import RESULTS, Table, load, write_results
from serve import CONNECTIONS, Contender, free_port, load_with_wrk
from slow_clients import connected, send_slowly

APP = """
import orjson
BODY = orjson.dumps({"results": [[i / 384 - 0.5 for i in range(384)]]})
HEAD = [(b"content-type", b"application/json"), (b"content-length", str(len(BODY)).encode())]

async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        part = await receive()
        body, more = body + part.get("body", b""), part.get("more_body", False)
    orjson.loads(body)
    await send({"type": "http.response.start", "status": 200, "headers": HEAD})
    await send({"type": "http.response.body", "body": BODY})
"""
SERVERS = {
    "uvicorn": ("uvicorn", "app:app", "--host", "127.0.0.1", "--port", "PORT", "--no-access-log",
                "--http", "httptools", "--loop", "uvloop"),
    "hypercorn": ("hypercorn", "app:app", "--bind", "127.0.0.1:PORT", "--worker-class", "uvloop"),
    "granian": ("granian", "app:app", "--interface", "asgi", "--host", "127.0.0.1", "--port", "PORT",
                "--loop", "uvloop", "--no-access-log"),
}  # fmt: skip
PATIENCE = 30.0


def main() -> None:
    """Measure, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "http_servers.json")
    asked = parser.parse_args()
    busy = load()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "app.py").write_text(APP)
        everybody = [contender(name, asked.servers, folder) for name in SERVERS]
        try:
            for one in everybody:
                one.start()
            found = [
                {one.name: load_with_wrk(one, asked.seconds, Path(folder)) for one in everybody}
                for _ in range(asked.rounds)
            ]
            held = {one.name: asyncio.run(patience(one)) for one in everybody}
        finally:
            for one in everybody:
                one.stop()
    rows = [
        [name, *(round(statistics.median(one[name][key] for one in found), 2) for key in found[0][name]), *held[name]]
        for name in SERVERS
    ]
    write_results(
        asked.output,
        "HTTP servers",
        f"An application that computes nothing, {CONNECTIONS} clients that wait for their answer, by wrk, median of "
        f"{asked.rounds} rounds; then one client that sends a byte every half second. Settings as they come; {busy}",
        [Table(["server", "requests/s", "p50 ms", "p99 ms", "errors", "a slow head", "a slow body"], rows)],
        [versions(asked.servers)],
    )


def contender(name: str, python: str, folder: str) -> Contender:
    """One of the servers, started in the folder of the application."""
    port = free_port()
    words = [word.replace("PORT", str(port)) for word in SERVERS[name]]
    command = ["env", f"PYTHONPATH={folder}", python, "-m", *words]
    return Contender(name, command, "/embed", "inputs", port)


async def patience(one: Contender) -> list[str]:
    """How long a head and a body may go on for ever."""
    return list(await asyncio.gather(*(_held(one, kind) for kind in ("head", "body"))))


async def _held(one: Contender, kind: str) -> str:
    start = time.monotonic()
    with await connected(f"http://127.0.0.1:{one.port}") as connection:
        try:
            await asyncio.wait_for(send_slowly(connection, "m", kind), PATIENCE)
        except (asyncio.TimeoutError, TimeoutError):
            return f"open after {PATIENCE:.0f} s"
    return f"closed after {time.monotonic() - start:.1f} s"


def versions(python: str) -> str:
    """Which versions were measured."""
    code = f"from importlib.metadata import version as v; print(', '.join(n + ' ' + v(n) for n in {list(SERVERS)!r}))"
    done: Any = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return f"{done.stdout.strip()}; one process each."


if __name__ == "__main__":
    main()
