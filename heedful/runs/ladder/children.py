"""The processes of the rungs as whoever started them sees them: some at a time, heard of, and stopped together."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import torch

from heedful.runs.ladder.measured import Measured
from heedful.runs.ladder.rungs import Rung
from heedful.runs.ladder.settings import LadderSettings
from heedful.runs.settings import storable
from heedful.training.events import Event, Note, Progress
from heedful.training.signals import StopSignals

MODULE = "heedful.runs.ladder.rung_process"
LOG = "errors.log"
SECONDS_BETWEEN_LINES = 15.0  # where several models train, each tells of its steps in lines
POLL = 0.2


class Child:
    """The process of one rung."""

    def __init__(self, rung: Rung, settings: LadderSettings, tensorboard: bool, hear: Callable[[Event], None]) -> None:
        self.rung, self.settings, self.hear = rung, settings, hear
        self.job = {"settings": storable(settings), "model": rung.name, "tensorboard": tensorboard}
        self.folder = Path(settings.output) / rung.name
        self.stopped = False
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._last_line = 0.0

    def run(self) -> None:
        """Start the process and listen to it until it ends."""
        self.folder.mkdir(parents=True, exist_ok=True)
        measured = Measured(self.folder)
        measured.begin()
        with (self.folder / LOG).open("w+", encoding="utf-8") as log:
            process = self._start(log)
            if process is None:
                return
            assert process.stdin is not None and process.stdout is not None
            with suppress(BrokenPipeError), process:
                process.stdin.write(json.dumps(self.job) + "\n")
                process.stdin.flush()
                for line in process.stdout:
                    self._tell(line)
                process.wait()
            if process.returncode and not self.stopped:
                self._mourn(process.returncode)

    def stop(self, number: int) -> None:
        """Ask the process to write down what it has and to end; one that has not been started never is."""
        with self._lock:
            self.stopped = True
            if self._process is not None and self._process.poll() is None:
                self._process.send_signal(number)

    def _start(self, log: Any) -> subprocess.Popen[str] | None:
        with self._lock:
            if self.stopped:
                return None
            self._process = subprocess.Popen(
                [sys.executable, "-m", MODULE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self._environment(),
                text=True,
                encoding="utf-8",
                start_new_session=True,  # Ctrl-C comes to us, and we pass it on
            )
            return self._process

    def _environment(self) -> dict[str, str]:
        alone = self.settings.at_once == 1
        threads = {} if alone else {"OMP_NUM_THREADS": str(max(1, torch.get_num_threads() // self.settings.at_once))}
        return {**os.environ, "PYTHONUTF8": "1", **threads}

    def _tell(self, line: str) -> None:
        try:
            told = json.loads(line)
        except ValueError:  # something printed by a library
            told = {"note": line.rstrip()}
        if "note" in told:
            self.hear(Note(f"{self.rung.name}: {told['note']}"))
        elif self.settings.at_once == 1:
            self.hear(Progress(**told["progress"]))
        elif time.monotonic() - self._last_line > SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            step = Progress(**told["progress"])
            speed = f"{step.tokens_per_second:,.0f} tokens/s, {step.seconds_left:,.0f} s left"
            self.hear(Note(f"{self.rung.name}: step {step.step:,}/{step.steps:,}, {speed}"))

    def _mourn(self, code: int) -> None:
        """Keep the last words of a process that came to grief."""
        lines = (self.folder / LOG).read_text(encoding="utf-8", errors="replace").strip().splitlines()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"code {code}"
        reason = f"the process ended with {how}" + (f": {lines[-1]}" if lines else "")
        Measured(self.folder).fail(reason)
        self.hear(Note(f"{self.rung.name}: {reason}"))


def run_all(
    children: Sequence[Child], at_once: int, signals: StopSignals | None, done: Callable[[Child], object]
) -> int | None:
    """Run the processes, some at a time, and tell of each that is `done`; gives the signal that stopped them."""

    def one(child: Child) -> None:
        child.run()
        done(child)

    with signals or nullcontext(), ThreadPoolExecutor(at_once) as pool:
        futures = [pool.submit(one, child) for child in children]
        received = None
        try:
            while wait(futures, POLL).not_done:
                if signals is not None and signals.received is not None and received is None:
                    received = signals.received
                    _stop(children, received)
        except BaseException:  # Ctrl-C in a program that listens to no signals
            _stop(children, signal.SIGINT)
            raise
    for future in futures:
        future.result()
    return received


def _stop(children: Sequence[Child], number: int) -> None:
    for child in children:
        child.stop(number)
