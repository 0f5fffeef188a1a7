"""What a running server bears: too much load, slow connections, clients that go away, SIGTERM, and a long time.

    heedful serve MODEL
    python benchmarks/serve_stress.py overload http://127.0.0.1:8000 --seconds 600
    python benchmarks/serve_stress.py slow     http://127.0.0.1:8000 --connections 1000 --seconds 300
    python benchmarks/serve_stress.py aborted  http://127.0.0.1:8000 --connections 10000
    python benchmarks/serve_stress.py soak     http://127.0.0.1:8000 --seconds 3600
    python benchmarks/serve_stress.py sigterm  MODEL --rounds 100

Every vector is compared with that of its text. `overload` finds out what the server bears by a closed loop, loads it
with 80 % of that, and then with twice as much. `soak` runs at 70 % and compares its first minute with its last.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from heedful.client import Client
from heedful.errors import HeedfulError
from heedful.serving.load_test import Load, run_load

Report = dict[str, Any]


def run(url: str, model: str | None, **how: Any) -> Report:
    """One load."""
    return asyncio.run(run_load(Load(url, model, **how)))


def overload(url: str, model: str | None, seconds: float, clients: int = 64) -> Report:
    """What it bears, 80 % of that, and twice as much."""
    short = max(1.0, min(20.0, seconds / 4))
    bears = run(url, model, clients=clients, seconds=short)["requests_a_second"]
    calm = run(url, model, rate=0.8 * bears, seconds=short)
    hard = run(url, model, rate=2.0 * bears, seconds=seconds)
    return {
        "bears_per_second": bears,
        "at_80_percent": calm,
        "at_200_percent": hard,
        "p99_ratio": hard["p99_ms"] / calm["p99_ms"],
        "wrong_answers": calm["wrong_answers"] + hard["wrong_answers"],
    }


def soak(url: str, model: str | None, seconds: float, clients: int = 64) -> Report:
    """70 % for a long time: the first part beside the last."""
    part = max(1.0, min(60.0, seconds / 4))
    rate = 0.7 * run(url, model, clients=clients, seconds=min(20.0, part))["requests_a_second"]
    first = run(url, model, rate=rate, seconds=part)
    between = run(url, model, rate=rate, seconds=max(0.1, seconds - 2 * part))
    last = run(url, model, rate=rate, seconds=part)
    wrong = sum(one["wrong_answers"] for one in (first, between, last))
    return {"first": first, "last": last, "p50_drift": last["p50_ms"] / first["p50_ms"] - 1, "wrong_answers": wrong}


def slow(url: str, model: str | None, seconds: float, connections: int) -> Report:
    """Connections that send a byte now and then, beside a load; how long the slow ones were kept."""
    before = run(url, model, clients=4, seconds=min(10.0, seconds))
    kept: list[float] = []
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=_dribble, args=(url, n, until, kept), daemon=True) for n in range(connections)]
    for thread in threads:
        thread.start()
    during = run(url, model, clients=4, seconds=seconds)
    for thread in threads:
        thread.join(60)
    longest = max(kept, default=0.0)
    return {"before": before, "during": during, "closed": len(kept), "longest_kept_seconds": longest}


def _dribble(url: str, number: int, until: float, kept: list[float]) -> None:
    """By turns: a head, and a body, that never end."""
    head = b"POST /v1/models/none/embed HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    text = head + (b"x-filler: " + b"y" * 9999 if number % 2 else b"content-length: 9999\r\n\r\n" + b" " * 9000)
    while time.monotonic() < until:
        start = time.monotonic()
        try:
            with _connected(url) as connection:
                connection.sendall(text[: len(head)])
                for byte in text[len(head) :]:
                    connection.sendall(bytes([byte]))
                    time.sleep(0.2)
                    if time.monotonic() > until + 20:
                        return
        except OSError:
            kept.append(time.monotonic() - start)


def aborted(url: str, model: str | None, connections: int) -> Report:
    """Requests whose client goes away before the answer; the server answers the next one."""
    name = model or Client(url).info()["models"][0]["name"]
    body = json.dumps({"inputs": ["the river and the bank"] * 4}).encode()
    head = f"POST /v1/models/{name}/embed HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    for _ in range(connections):
        with _connected(url) as connection:
            connection.sendall(head.encode() + f"content-length: {len(body)}\r\n\r\n".encode() + body)
    with Client(url, name) as client:
        return {"aborted": connections, "next_answer": list(client.embed(["and now?"]).shape)}


def _connected(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname or "127.0.0.1", parts.port or 80), timeout=30)


def sigterm(model: str, rounds: int, clients: int = 8) -> Report:
    """Start, load, SIGTERM, again and again: every request that was accepted is answered, or told 503."""
    outcomes: Counter[str] = Counter()
    codes: Counter[int] = Counter()
    for _ in range(rounds):
        command = [sys.executable, "-m", "heedful", "serve", "--name", f"m={model}", "--port", "0"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        url = next(line.split()[-1] for line in process.stderr if line.startswith("ready on "))
        threads = [threading.Thread(target=_until_refused, args=(url, outcomes)) for _ in range(clients)]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join(60)
        process.stderr.read()
        codes[process.wait(60)] += 1
    return {"rounds": rounds, "outcomes": dict(outcomes), "exit_codes": dict(codes)}


def _until_refused(url: str, outcomes: Counter[str]) -> None:
    with Client(url, "m", retry=False, timeout=30) as client:
        while True:
            try:
                client.embed(["the river and the bank"])
                outcomes["answered"] += 1
            except HeedfulError as error:
                status = getattr(error, "status", None)
                outcomes["told 503" if status == 503 else error.what.partition(":")[0]] += 1
                return


def main() -> None:
    """Run one of them and print what it found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["overload", "slow", "aborted", "soak", "sigterm"])
    parser.add_argument("target", help="a server's address; for sigterm a model folder")
    parser.add_argument("--model")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    found = {
        "overload": lambda: overload(options.target, options.model, options.seconds),
        "soak": lambda: soak(options.target, options.model, options.seconds),
        "slow": lambda: slow(options.target, options.model, options.seconds, options.connections),
        "aborted": lambda: aborted(options.target, options.model, options.connections),
        "sigterm": lambda: sigterm(options.target, options.rounds),
    }[options.kind]()
    print(json.dumps(found, indent=2))
    if options.output:
        options.output.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
