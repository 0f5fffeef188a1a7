"""What a server bears: too much load, slow connections, clients that go away, SIGTERM, and a long time.

    python benchmarks/serve_stress.py overload --seconds 600
    python benchmarks/serve_stress.py slow     --connections 1000 --seconds 300
    python benchmarks/serve_stress.py aborted  --connections 10000
    python benchmarks/serve_stress.py soak     --seconds 3600
    python benchmarks/serve_stress.py sigterm  --rounds 100

Each starts a server of its own and watches its memory and descriptors. Every vector is compared with that of its text.
`overload` finds out by a closed loop what the server bears, loads it with 80 % of that, and then with twice as much.
`soak` runs at 70 % and compares its first part with its last. Requests have eight texts, so that the client, which
shares the machine, is no bottleneck.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from materials import minilm
from results_file import RESULTS, Table, load, write_results
from served import Watched, serving
from slow_clients import dribble

from heedful.client import Client
from heedful.errors import HeedfulError
from heedful.serving.load_test import Load, run_load

Report = dict[str, Any]
INPUTS = 8
CLIENTS = 16
# After a load, for so long at most: until the last connections are gone.
SETTLING = 15.0
SAMPLES = 120  # of the memory in a soak


def run(server: Watched, model: str, **how: Any) -> Report:
    """One load."""
    return asyncio.run(run_load(Load(server.url, model, inputs=INPUTS, **how)))


def held(server: Watched, before: tuple[int, float]) -> Report:
    """How descriptors and memory have grown since `before`, once all is quiet again."""
    until = time.monotonic() + SETTLING
    while server.descriptors > before[0] and time.monotonic() < until:
        time.sleep(0.1)
    return {
        "descriptors_more": server.descriptors - before[0],
        "memory_growth_percent": round(100 * (server.mebibytes / before[1] - 1), 2),
    }


def overload(server: Watched, model: str, seconds: float) -> Report:
    """What it bears, 80 % of that, and twice as much."""
    short = max(1.0, min(60.0, seconds / 4))
    bears = run(server, model, clients=CLIENTS, seconds=short)["requests_a_second"]
    calm = run(server, model, rate=0.8 * bears, seconds=short)
    run(server, model, rate=2.0 * bears, seconds=short / 2)  # its batches are larger, and memory is taken for them once
    before = server.descriptors, server.mebibytes
    hard = run(server, model, rate=2.0 * bears, seconds=seconds)
    return {
        "requests_a_second_it_bears": bears,
        "accepted_p99_ms_at_80_percent": calm["p99_ms"],
        "accepted_p99_ms_at_200_percent": hard["p99_ms"],
        "p99_ratio": hard["p99_ms"] / calm["p99_ms"],
        "answered": hard["answered"],
        "refused": hard["errors"],
        "refused_p99_ms": hard.get("refused_p99_ms", 0.0),
        "wrong_answers": calm["wrong_answers"] + hard["wrong_answers"],
        **held(server, before),
    }


def soak(server: Watched, model: str, seconds: float) -> Report:
    """70 % for a long time: the first part beside the last."""
    part = max(1.0, min(300.0, seconds / 4))
    rate = 0.7 * run(server, model, clients=CLIENTS, seconds=min(20.0, part))["requests_a_second"]
    first = run(server, model, rate=rate, seconds=part)
    before = server.descriptors, server.mebibytes
    with sampled(lambda: server.mebibytes, seconds / SAMPLES) as memory:
        between = run(server, model, rate=rate, seconds=max(0.1, seconds - 2 * part))
        last = run(server, model, rate=rate, seconds=part)
    return {
        "requests_a_second": rate,
        "answered": sum(one["answered"] for one in (first, between, last)),
        "p50_ms_first": first["p50_ms"],
        "p50_drift_percent": 100 * (last["p50_ms"] / first["p50_ms"] - 1),
        "p99_ratio": last["p99_ms"] / first["p99_ms"],
        "errors": dict(sum((Counter(one["errors"]) for one in (first, between, last)), Counter[str]())),
        "wrong_answers": sum(one["wrong_answers"] for one in (first, between, last)),
        **held(server, before),
        "memory_growth_percent_in_the_last_half": round(growth(memory[len(memory) // 2 :]), 2),
    }


@contextmanager
def sampled(value: Callable[[], float], every: float) -> Iterator[list[float]]:
    """A list that gets the value every so many seconds until the end of the block."""
    found, done = [value()], threading.Event()

    def watch() -> None:
        while not done.wait(every):
            found.append(value())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield found
    finally:
        done.set()
        thread.join()


def growth(values: Sequence[float]) -> float:
    """By how many per cent a straight line through equally distant values rises from the first to the last.

    Of two single values chance would say more than time: memory goes up and down by some per cent with each batch.
    """
    if len(values) < 2:
        return 0.0
    slope, start = np.polyfit(np.arange(len(values)), values, 1)
    return float(100 * slope * (len(values) - 1) / start)


def slow(server: Watched, model: str, seconds: float, connections: int) -> Report:
    """Connections whose head, body or reading never ends, beside four clients in a hurry."""
    calm = run(server, model, clients=4, seconds=max(1.0, seconds / 10))
    before = server.descriptors, server.mebibytes
    with dribble(server.url, model, connections, seconds) as finished:
        during = run(server, model, clients=4, seconds=seconds)
        kept, grown = finished(), held(server, before)
    return {
        "p99_ms_before": calm["p99_ms"],
        "p99_ms_during": during["p99_ms"],
        "p99_ratio": during["p99_ms"] / calm["p99_ms"],
        "wrong_answers": during["wrong_answers"],
        "errors": during["errors"],
        **{f"longest_{kind}_seconds": round(max(times), 2) for kind, times in kept.items() if times},
        "closed": sum(map(len, kept.values())),
        **grown,
    }


def aborted(server: Watched, model: str, connections: int) -> Report:
    """Requests whose client goes away before the answer, while others keep the queue filled."""
    body = json.dumps({"inputs": ["the river and the bank"] * INPUTS}).encode()
    head = f"POST /v1/models/{model}/embed HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    request = head.encode() + f"content-length: {len(body)}\r\n\r\n".encode() + body
    done, answered = threading.Event(), Counter[str]()
    with Client(server.url, model) as client:
        # As in `overload`, memory for large batches is taken once, and what is looked for is what comes after that.
        run(server, model, clients=CLIENTS, seconds=min(20.0, connections / 500))
        before = server.descriptors, server.mebibytes
        at_start = server.metric("heedful_cancelled_total"), server.metric("heedful_inputs_total")
        busy = [threading.Thread(target=_keep_busy, args=(server, model, done, answered)) for _ in range(CLIENTS)]
        for thread in busy:
            thread.start()
        for _ in range(connections):
            with _connected(server.url) as connection:
                connection.sendall(request)
        done.set()
        for thread in busy:
            thread.join()
        shape = list(client.embed(["and now?"]).shape)
        cancelled = server.metric("heedful_cancelled_total") - at_start[0]
        inputs = server.metric("heedful_inputs_total") - at_start[1] - 1 - INPUTS * answered["answered"]
        return {
            "aborted": connections,
            "taken_out_of_the_queue_or_dropped": int(cancelled),
            "answered_to_nobody": round(inputs / INPUTS),
            "others_answered": answered["answered"],
            "next_answer": shape,
            **held(server, before),
        }


def _keep_busy(server: Watched, model: str, done: threading.Event, answered: Counter[str]) -> None:
    with Client(server.url, model) as client:
        while True:
            client.embed([f"a text to compute, number {number}" for number in range(INPUTS)])
            answered["answered"] += 1
            if done.is_set():
                return


def _connected(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname or "127.0.0.1", parts.port or 80), timeout=30)


def sigterm(folder: str, rounds: int, clients: int = 8) -> Report:
    """Start, load, SIGTERM, again and again: every request that was sent is answered, or told 503."""
    outcomes, codes, unready = Counter[str](), Counter[int](), list[float]()
    for _ in range(rounds):
        with serving(folder) as (server, process):
            connected = threading.Barrier(clients + 1)
            asking = [
                threading.Thread(target=_until_refused, args=(server, connected, outcomes)) for _ in range(clients)
            ]
            for thread in asking:
                thread.start()
            connected.wait(60)
            time.sleep(0.5)
            with closing(HTTPConnection(urlsplit(server.url).netloc, timeout=30)) as watch:
                assert _status(watch) == 200
                process.send_signal(signal.SIGTERM)
                start = time.monotonic()
                while _status(watch) == 200:
                    continue
                unready.append(time.monotonic() - start)
            for thread in asking:
                thread.join(60)
            assert process.stderr is not None
            process.stderr.read()
            codes[process.wait(60)] += 1
    lost = sum(count for outcome, count in outcomes.items() if outcome not in ("answered", "told 503"))
    return {
        "rounds": rounds,
        "outcomes": dict(outcomes),
        "lost": lost,
        "exit_codes": {str(code): count for code, count in codes.items()},
        "longest_until_503_ms": round(1000 * max(unready), 1),
    }


def _status(watch: HTTPConnection) -> int:
    watch.request("GET", "/ready")
    answer = watch.getresponse()
    answer.read()
    return answer.status


def _until_refused(server: Watched, connected: threading.Barrier, outcomes: Counter[str]) -> None:
    with Client(server.url, "m", retry=False, timeout=30) as client:
        client.tokenize(["a"])
        connected.wait(60)
        while True:
            try:
                client.embed(["the river and the bank"])
                outcomes["answered"] += 1
            except HeedfulError as error:
                status = getattr(error, "status", None)
                outcomes["told 503" if status == 503 else error.what] += 1
                return


def main() -> None:
    """Run one of them, show what it found and write it down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["overload", "slow", "aborted", "soak", "sigterm"])
    parser.add_argument("model", nargs="?", help="a model folder with vectors; all-MiniLM-L6-v2, if nothing is said")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    model, before = options.model or str(minilm()), load()
    kinds: dict[str, Callable[[Watched], Report]] = {
        "overload": lambda server: overload(server, "m", options.seconds),
        "soak": lambda server: soak(server, "m", options.seconds),
        "slow": lambda server: slow(server, "m", options.seconds, options.connections),
        "aborted": lambda server: aborted(server, "m", options.connections),
    }
    if options.kind == "sigterm":
        found = sigterm(model, options.rounds)
    else:
        with serving(model) as (server, _):
            found = kinds[options.kind](server)
    rows = [[name.replace("_", " "), _shown(value)] for name, value in found.items()]
    output = options.output or RESULTS / f"serve_{options.kind}.json"
    about = {one.__name__: one.__doc__ for one in (overload, soak, slow, aborted, sigterm)}[options.kind]
    title = f"The server under stress: {options.kind}"
    write_results(output, title, str(about), [Table(("what", "found"), rows)], [before])


def _shown(value: Any) -> Any:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {count}" for name, count in value.items()) or "none"
    return round(value, 2) if isinstance(value, float) else value


if __name__ == "__main__":
    main()
