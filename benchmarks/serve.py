"""The server under load, by `wrk`: with merging and without, and beside peers that answer the same request.

    python benchmarks/serve.py
    python benchmarks/serve.py --alone                # only one client, beside Python; nothing is written
    python benchmarks/serve.py --peer plain='python serve_peer.py MODEL PORT' \\
        --peer infinity/embeddings:input='infinity_emb v2 --model-id MODEL --port PORT'

A peer is NAME=COMMAND or NAME/PATH:FIELD=COMMAND: a server that takes POST /PATH {"FIELD": ["…"]}, /embed and texts if
nothing is said, on the port that stands for PORT. Everybody is started once with the same number of threads, asked in
turns for so many seconds a round, and stopped. `wrk` is the Debian package of that name: 64 connections that each wait
for their answer, one short sentence a request. One client alone is measured too, beside Python.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from materials import minilm
from results_file import RESULTS, Table, load, write_results

from heedful.client import Client
from heedful.inference.load import load_embedder

WORDS = "river bank money weather sunny stadium dog park train late music loud soup cold miller road"
LUA = """
local words = {%s}
local n = 0
request = function()
  n = n + 1
  local t = {}
  for i = 1, 4 + n %% 7 do t[i] = words[(n * 7 + i * 5) %% #words + 1] end
  local body = '{"%s": ["' .. table.concat(t, " ") .. " " .. n .. '"]}'
  return wrk.format("POST", nil, {["Content-Type"] = "application/json"}, body)
end
"""
CONNECTIONS = 64
PATIENCE = 300.0
# Of one client: the queries of a block, those of them that do not count, and the seconds between blocks.
QUERIES, WARMING, PAUSE = 30, 5, 0.1


@dataclass
class Contender:
    """A server to load."""

    name: str
    command: Sequence[str]
    path: str
    field: str  # under which the texts stand
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}{self.path}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        threads = {"OMP_NUM_THREADS": str(torch.get_num_threads())}
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(self.command, env={**os.environ, **threads}, stdout=quiet, stderr=quiet)
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and self.process.poll() is None:
            asked = ["curl", "-sf", "-o", "/dev/null", "-H", "Content-Type: application/json"]
            if not subprocess.run([*asked, "-d", json.dumps({self.field: ["ready?"]}), self.url]).returncode:
                return
            time.sleep(0.2)
        raise SystemExit(f"{self.name} does not answer")

    def stop(self) -> None:
        """End it."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(60)


def free_port() -> int:
    """A port that nobody has now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def load_with_wrk(one: Contender, seconds: float, folder: Path) -> dict[str, float]:
    """Requests a second, percentiles and errors of one round."""
    script = folder / f"{one.field}.lua"
    script.write_text(LUA % (", ".join(f'"{word}"' for word in WORDS.split()), one.field))
    command = [
        "wrk",
        "-t1",
        f"-c{CONNECTIONS}",
        f"-d{max(1, round(seconds))}s",
        "--latency",
        "-s",
        str(script),
        one.url,
    ]
    return parsed(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def parsed(text: str) -> dict[str, float]:
    """What wrk has said."""
    units = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4}
    rate = re.search(r"Requests/sec:\s+([\d.]+)", text)
    assert rate is not None, text
    found = {"requests_per_second": float(rate[1])}
    for share, value, unit in re.findall(r"^\s+(50|99)%\s+([\d.]+)(us|ms|s|m)\s*$", text, re.M):
        found[f"p{share}_ms"] = float(value) * units[unit]
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    return {**found, "errors": float(bad[1]) if bad else 0.0}


def one_query(model: str, url: str, name: str, blocks: int) -> dict[str, float]:
    """The median milliseconds of one short query, in Python and over HTTP, in turns.

    Queries come in blocks of one kind, and the first of a block do not count: after Python's own, its threads stay
    awake for some milliseconds and would take the server's cores.
    """
    loaded, query = load_embedder(model), ["where is the bank of the river"]
    times: dict[str, list[float]] = {"python": [], "http": []}
    with Client(url, name) as client:
        for _ in range(blocks):
            for kind, ask in (("python", loaded.embed), ("http", client.embed)):
                for number in range(QUERIES):
                    start = time.perf_counter()
                    ask(query)
                    if number >= WARMING:
                        times[kind].append(1000 * (time.perf_counter() - start))
                time.sleep(PAUSE)
    found = {f"{kind}_p50_ms": statistics.median(values) for kind, values in times.items()}
    return {**found, "difference_ms": found["http_p50_ms"] - found["python_p50_ms"]}


def alone(model: str, blocks: int) -> dict[str, float]:
    """One client of ours, while nobody else asks."""
    ours = contenders(model, [])[0]
    try:
        ours.start()
        return one_query(model, f"http://127.0.0.1:{ours.port}", "m", blocks)
    finally:
        ours.stop()


def contenders(model: str, peers: Sequence[str]) -> list[Contender]:
    """Ours with merging and without, and the peers."""
    found = []
    for name, more in (("heedful", []), ("heedful, unmerged", ["--batch-tokens", "1"])):
        port = free_port()
        command = [
            sys.executable,
            "-m",
            "heedful",
            "serve",
            "--name",
            f"m={model}",
            "--port",
            str(port),
            "--max-wait",
            "60",
        ]
        found.append(Contender(name, [*command, *more], "/v1/models/m/embed", "inputs", port))
    return [*found, *(contender(peer, model) for peer in peers)]


def contender(peer: str, model: str) -> Contender:
    """A peer, from NAME=COMMAND or NAME/PATH:FIELD=COMMAND."""
    said, _, command_line = peer.partition("=")
    name, _, where = said.partition("/")
    path, _, field = where.partition(":")
    port = free_port()
    command = os.path.expandvars(command_line).replace("MODEL", model).replace("PORT", str(port))
    return Contender(name, shlex.split(command), f"/{path or 'embed'}", field or "texts", port)


def measure(model: str, peers: Sequence[str], seconds: float, rounds: int, blocks: int) -> dict[str, Any]:
    """All contenders in turns."""
    everybody = contenders(model, peers)
    results: dict[str, list[dict[str, float]]] = {one.name: [] for one in everybody}
    try:
        with tempfile.TemporaryDirectory() as folder:
            for one in everybody:
                one.start()
            for _ in range(rounds):
                for one in everybody:
                    results[one.name].append(load_with_wrk(one, seconds, Path(folder)))
        one_client = one_query(model, f"http://127.0.0.1:{everybody[0].port}", "m", blocks)
    finally:
        for one in everybody:
            one.stop()
    medians = {
        name: {key: statistics.median(row[key] for row in rows) for key in rows[0]} for name, rows in results.items()
    }
    ours = medians["heedful"]["requests_per_second"]
    ratios = {name: ours / row["requests_per_second"] for name, row in medians.items() if name != "heedful"}
    return {"load": medians, "ratios": ratios, "one_query": one_client}


def told_of_one(found: dict[str, float]) -> str:
    """What was found of one client, in a line."""
    numbers = ", ".join(f"{name.replace('_', ' ')} {value:.2f}" for name, value in found.items())
    return f"one client with one short query at a time: {numbers}"


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", help="all-MiniLM-L6-v2, if nothing is said")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--blocks", type=int, default=20, help=f"of {QUERIES} queries of one client")
    parser.add_argument("--alone", action="store_true", help="only that one client; print, and write nothing")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of everybody")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "serve.json")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    model = options.model or str(minilm())
    if options.alone:
        print(told_of_one(alone(model, options.blocks)))
        return
    found = measure(model, options.peer, options.seconds, options.rounds, options.blocks)
    rows = [[name, *(round(value, 2) for value in row.values())] for name, row in found["load"].items()]
    ratios = [
        f"heedful answers {ratio:.2f} times as many requests as {name}" for name, ratio in found["ratios"].items()
    ]
    told = [*ratios, told_of_one(found["one_query"])]
    columns = ("server", "requests/s", "p50 ms", "p99 ms", "errors")
    what = (
        f"{CONNECTIONS} clients that wait for their answer, one short sentence a request, by wrk; "
        f"{options.threads} threads compute; {load()}"
    )
    write_results(options.output, "The server under load", what, [Table(columns, rows)], told)


if __name__ == "__main__":
    main()
