"""Worker threads that each compute one batch with their share of the cores.

Several batches side by side on one core each are faster than one batch spread over all cores: small products do not
split well, and while one worker is in Python another computes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch

# More Python threads than this wait for each other more than they compute; the cores are shared out among them.
MOST_WORKERS = 8


class _Threads:
    """torch's thread count is one setting of the process: the first pool takes it over, the last one gives it back."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.pools = 0
        self.before = 0

    @contextmanager
    def taken(self) -> Iterator[int]:
        """The number of threads there are to share, while a pool runs."""
        with self.lock:
            if self.pools == 0:
                self.before = torch.get_num_threads()
            self.pools += 1
        try:
            yield self.before
        finally:
            with self.lock:
                self.pools -= 1
                if self.pools == 0:
                    torch.set_num_threads(self.before)


_threads = _Threads()


def workers_of(threads: int) -> int:
    """How many workers share so many threads."""
    return min(threads, MOST_WORKERS)


@contextmanager
def worker_pool() -> Iterator[ThreadPoolExecutor]:
    """A pool with a worker for each core; inside a worker torch uses only that worker's share of the threads."""
    with _threads.taken() as threads:
        workers = workers_of(threads)

        def start() -> None:
            torch.set_num_threads(threads // workers)
            # Vanishing attention weights are denormal numbers, which some processors compute a hundred times slower.
            torch.set_flush_denormal(True)

        pool = ThreadPoolExecutor(workers, thread_name_prefix="heedful", initializer=start)
        try:
            yield pool
        finally:
            # A consumer that stops early leaves work behind that nobody waits for.
            pool.shutdown(cancel_futures=True)
