"""The micro-batches of the coming steps, made in a background thread while the present step is computed."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any

from heedful.training.contract import Source
from heedful.training.distributed import World

DEPTH = 2


class Prefetch:
    """Keeps the next steps' micro-batches ready; `seconds` is the background thread's own work."""

    def __init__(self, source: Source, world: World, steps: int) -> None:
        self._source, self._world, self._steps = source, world, steps
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="accumulate")
        self._waiting: deque[Future[Sequence[Any]]] = deque()
        self._next = 0
        self._accumulate = 1
        self.seconds = 0.0

    def __enter__(self) -> Prefetch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def start(self, number: int, accumulate: int) -> None:
        """Begin (again) at step `number`, each step cut into `micro-batches`."""
        for future in self._waiting:
            future.cancel()
        self._waiting.clear()
        self._next, self._accumulate = number, accumulate

    def take(self) -> Sequence[Any]:
        """The micro-batches of the next step."""
        if not self._waiting:
            self.fill(depth=1)
        number = self._next - len(self._waiting)
        try:
            return self._waiting.popleft().result()
        except MemoryError:
            # It was made while a step held its activations; now they are gone.
            return self._make(number)

    def fill(self, depth: int = DEPTH) -> None:
        """Let the thread work up to `depth` steps ahead.

        Best called at the start of a backward pass, the long stretch in which nobody else wants Python's global lock.
        """
        while len(self._waiting) < depth and self._next < self._steps:
            self._waiting.append(self._pool.submit(self._make, self._next))
            self._next += 1

    def _make(self, number: int) -> Sequence[Any]:
        began = time.perf_counter()
        made = self._source.step(number, self._world.rank, self._world.size, self._accumulate)
        self.seconds += time.perf_counter() - began
        return made
