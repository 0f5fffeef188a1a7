"""Engines that each work in a process of their own, so that the thread pools of one do not disturb another.

Only the one that is asked works.
"""

from __future__ import annotations

import importlib.metadata
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

Answer = Callable[[Any], Any]
# From the folder of a model and one for scratch to something that answers; must be a function of a module.
Build = Callable[[Path, Path], Answer]


class EngineProcess:
    """An engine at work in its own process; the first word of its name is its package."""

    def __init__(self, name: str, build: Build, model: Path, warm_up: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, there = context.Pipe()
        self._process = context.Process(target=_serve, args=(name, build, model, warm_up, there), daemon=True)
        self._process.start()
        there.close()
        try:
            self.version: str = self._pipe.recv()
        except EOFError:
            sys.exit(f"the engine {name} does not start; see above")

    def ask(self, request: Any) -> tuple[Any, float]:
        """The answer and the seconds it took."""
        self._pipe.send(request)
        answer, seconds = self._pipe.recv()
        return answer, seconds

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.join()


@contextmanager
def processes(builds: Mapping[str, Build], model: Path, warm_up: Any) -> Iterator[dict[str, EngineProcess]]:
    """Engines by name, ready to be asked, for the time of a `with` block."""
    os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="true")
    running: dict[str, EngineProcess] = {}
    try:
        for name, build in builds.items():
            running[name] = EngineProcess(name, build, model, warm_up)
        yield running
    finally:
        for engine in running.values():
            engine.close()


def _serve(name: str, build: Build, model: Path, warm_up: Any, pipe: Connection) -> None:
    """Answer requests until the other side goes away."""
    with tempfile.TemporaryDirectory() as scratch:
        answer = build(model, Path(scratch))
        answer(warm_up)
        pipe.send(importlib.metadata.version(name.split()[0].replace("_", "-")))
        while True:
            try:
                request = pipe.recv()
            except EOFError:
                return
            start = time.perf_counter()
            result = answer(request)
            pipe.send((result, time.perf_counter() - start))
