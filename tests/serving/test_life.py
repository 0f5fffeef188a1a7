"""A server as a process: it starts, says so, answers what it has accepted when it is told to stop, and stops."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx2
import pytest
from click.testing import CliRunner

from heedful.cli.main import cli

PATIENCE = 60.0


class Process:
    """`heedful serve …` and what it says."""

    def __init__(self, *arguments: object, **environment: str) -> None:
        command = [sys.executable, "-m", "heedful", "serve", *map(str, arguments)]
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env={**os.environ, "HEEDFUL_SERVE_PORT": "0", **environment}
        )
        self.said: list[str] = []

    def line_with(self, text: str) -> str:
        """The next line that holds a text."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)
            if text in line:
                return line
        raise AssertionError("".join(self.said))

    def ready(self) -> str:
        """The address, as soon as requests are taken."""
        return self.line_with("ready on ").split()[-1]

    def ended(self) -> int:
        """How it ended, once it has."""
        assert self.process.stderr is not None
        self.said += self.process.stderr.readlines()
        return self.process.wait(PATIENCE)


@contextmanager
def served(*arguments: object, **environment: str) -> Iterator[Process]:
    one = Process(*arguments, **environment)
    try:
        yield one
    finally:
        one.process.kill()
        one.process.wait()
        if one.process.stderr is not None:
            one.process.stderr.close()


def ask_six(address: str, found: list[int]) -> list[threading.Thread]:
    """Six large requests under way, at least two of them in the queue, unless they are answered already."""

    def ask() -> None:
        body = {"inputs": ["the cat sees the dog " * 60] * 40}
        found.append(httpx2.post(f"{address}/v1/models/tiny/embed", json=body, timeout=PATIENCE).status_code)

    askers = [threading.Thread(target=ask) for _ in range(6)]
    for asker in askers:
        asker.start()
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        text = httpx2.get(f"{address}/metrics").text
        waiting = next(line for line in text.splitlines() if line.startswith("heedful_queue_requests "))
        if float(waiting.split()[1]) >= 2 or len(found) > 3:
            break
    return askers


def test_sigterm_answers_what_was_accepted_and_then_it_is_over(tiny_folder: Path) -> None:
    environment = {"HEEDFUL_SERVE_MAX_INPUTS": "77", "HEEDFUL_SERVE_MAX_WAIT": "1000"}
    with served("--name", f"tiny={tiny_folder}", "--threads", 1, **environment) as one:
        address = one.ready()
        said, found = "".join(one.said), list[int]()
        assert "tiny: embed, similarity, tokenize" in said and "tokens/s" in said and "MiB of memory" in said
        assert "max_inputs 77, " in said and "max_wait 1000" in said and "key none" in said
        askers = ask_six(address, found)
        with httpx2.Client(base_url=address) as kept:
            assert kept.get("/ready").status_code == 200
            one.process.send_signal(signal.SIGTERM)
            until = time.monotonic() + PATIENCE
            status = 200
            while status == 200 and time.monotonic() < until:
                status = kept.get("/ready").status_code
            assert status == 503
        for asker in askers:
            asker.join(PATIENCE)
        assert one.ended() == 0
        assert set(found) <= {200, 503} and len(found) == 6 and 200 in found
        assert "stopped" in one.said[-1]


def test_what_is_not_ready_when_the_drain_is_over_is_told_503(tiny_folder: Path) -> None:
    with served("--name", f"tiny={tiny_folder}", "--threads", 1, "--drain", 0.01, "--max-wait", 1000) as one:
        address, found = one.ready(), list[int]()
        askers = ask_six(address, found)
        one.process.send_signal(signal.SIGTERM)
        for asker in askers:
            asker.join(PATIENCE)
        assert set(found) <= {200, 503} and len(found) == 6


def test_a_second_signal_does_not_wait(tiny_folder: Path) -> None:
    with served(tiny_folder, "--threads", 1) as one:
        address = one.ready()
        body = {"inputs": ["the cat sees the dog " * 90]}

        def ask() -> None:
            with suppress(httpx2.HTTPError):
                httpx2.post(f"{address}/v1/models/tiny/score", json=body, timeout=PATIENCE)

        asker = threading.Thread(target=ask)
        asker.start()
        time.sleep(0.2)
        one.process.send_signal(signal.SIGTERM)
        time.sleep(0.05)
        one.process.send_signal(signal.SIGTERM)
        assert one.ended() in (0, 128 + signal.SIGTERM)  # 0 if it was quicker than the second signal
        asker.join(PATIENCE)


def test_it_listens_while_it_loads_and_then_asks_for_its_key(tiny_folder: Path, tmp_path: Path) -> None:
    lines, key = tmp_path / "lines.txt", tmp_path / "key"
    os.mkfifo(lines)  # it waits for what to search, until the test lets it go on
    key.write_text("open sesame\n")
    with served(tiny_folder, "--search", f"tiny={lines}", "--api-key-file", key) as one:
        address = one.line_with("listening on ").split("listening on ")[1].split(",")[0]
        early = httpx2.get(f"{address}/ready", timeout=PATIENCE)
        assert (early.status_code, early.json()["error"]["code"]) == (503, "starting")
        assert early.headers["retry-after"] == "1"
        assert httpx2.get(f"{address}/health", timeout=PATIENCE).json() == {"status": "starting"}
        with lines.open("w") as writer:
            writer.write("the cat\n")
        one.ready()
        assert httpx2.get(f"{address}/ready").status_code == 200
        assert "key required" in "".join(one.said) and "sesame" not in "".join(one.said)
        body, key_header = {"inputs": ["a"]}, {"authorization": "Bearer open sesame"}
        assert httpx2.post(f"{address}/v1/models/tiny/embed", json=body, headers=key_header).status_code == 200
        assert httpx2.post(f"{address}/v1/models/tiny/embed", json=body).status_code == 401


def test_the_models_may_come_from_the_environment(tiny_folder: Path, task_folders: dict[str, Path]) -> None:
    """As the unit in deploy/ has it."""
    models = f"{tiny_folder} {task_folders['classify']}"
    with served(HEEDFUL_SERVE_MODELS=models, HEEDFUL_SERVE_MAX_INPUTS="3") as one:
        found = httpx2.get(f"{one.ready()}/info").json()
        said = "".join(one.said)
    assert "loading 2 models" in said and "max_inputs 3, max_characters 200,000," in said and "drain 30" in said
    assert [model["name"] for model in found["models"]] == ["tiny", "classify"]
    assert found["limits"]["max_inputs"] == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "there is no model to serve"),
        (["{tmp}/nowhere"], "there is no such folder"),
        (["{tiny}", "--name", "empty={tmp}"], "config.json"),
        (["{tiny}", "{tiny}"], "two models are called tiny"),
        (["{tiny}", "--name", "x"], "--name x is not understood"),
        (["{tiny}", "--search", "other={tiny}"], "which is no model here"),
        (["{tiny}", "--api-key-file", "{tmp}/key"], "the key cannot be read"),
        (["{tiny}", "--host", "256.1.1.1"], "cannot listen there"),
        (["{tiny}", "--max-wait", "0"], "--max-wait"),
    ],
)
def test_what_cannot_be_served_is_told(arguments: list[str], said: str, tiny_folder: Path, tmp_path: Path) -> None:
    given = ["serve", "--port", "0", *(text.format(tiny=tiny_folder, tmp=tmp_path) for text in arguments)]
    result = CliRunner().invoke(cli, given)
    assert result.exit_code != 0
    assert said in f"{result.exception} {result.output}"
    assert "listening" not in result.output  # what waits for the port has nothing to wait for
