"""A server as a process of its own, and what it holds: memory, descriptors, and what its metrics say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Watched:
    """A running server: where it answers, and its process."""

    url: str
    pid: int

    @property
    def descriptors(self) -> int:
        """How many files and connections it has open."""
        return sum(1 for _ in Path(f"/proc/{self.pid}/fd").iterdir())

    @property
    def mebibytes(self) -> float:
        """Its memory."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def metric(self, name: str) -> float:
        """A number of /metrics, summed over its labels."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=60) as answer:
            text = answer.read().decode()
        return sum(float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.M))


@contextmanager
def serving(model: str, *options: str) -> Iterator[tuple[Watched, subprocess.Popen[str]]]:
    """`heedful serve` with one model called m, from when it is ready to the end of the block."""
    command = [sys.executable, "-m", "heedful", "serve", "--name", f"m={model}", "--port", "0", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        url = next((line.split()[-1] for line in process.stderr if line.startswith("ready on ")), None)
        if url is None:
            raise SystemExit("the server has not started")
        yield Watched(url, process.pid), process
    finally:
        process.terminate()
        process.wait(60)
        if process.stderr is not None:
            process.stderr.close()
