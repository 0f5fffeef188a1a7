"""Work shared out to workers: results in order, few tasks under way at a time, nothing left behind.

The workers are processes of this machine, or whatever an `Engine` has.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from heedful.errors import HeedfulError

In = TypeVar("In")
Out = TypeVar("Out")

_tool: Any = None


class Engine(Protocol):
    """Something that has workers."""

    def mapped(
        self, make_tool: Callable[..., Callable[[In], Out]], arguments: tuple[Any, ...], tasks: Iterable[In]
    ) -> Iterator[Out]:
        """The results of `make_tool(*arguments)` on every task, in order; each worker makes its own tool once."""
        ...


Workers = int | Engine


def mapped(
    make_tool: Callable[..., Callable[[In], Out]], arguments: tuple[Any, ...], tasks: Iterable[In], workers: Workers
) -> Generator[Out, None, None]:
    """The results of `make_tool(*arguments)` on every task, in order; each worker makes its own tool once.

    One worker is this process itself. More are new processes, so `make_tool` must be importable and a script that
    calls this needs the usual `if __name__ == "__main__"`.
    """
    if not isinstance(workers, int):
        yield from workers.mapped(make_tool, arguments, tasks)
        return
    with one_thread_each():
        if workers == 1:
            yield from map(make_tool(*arguments), tasks)
            return
        pool = ProcessPoolExecutor(
            workers, multiprocessing.get_context("spawn"), initializer=_start, initargs=(make_tool, arguments)
        )
        try:
            yield from _in_order(pool, tasks, most=workers + 1)
        except BrokenProcessPool as error:
            remedy = "free some memory, use fewer workers, and start again: what is done is kept"
            raise HeedfulError("a worker process was killed", remedy=remedy) from error
        finally:
            pool.shutdown(cancel_futures=True)


def _in_order(pool: ProcessPoolExecutor, tasks: Iterable[In], most: int) -> Iterator[Any]:
    running: deque[Future[Any]] = deque()
    for task in tasks:
        running.append(pool.submit(_work, task))
        if len(running) >= most:
            yield running.popleft().result()
    while running:
        yield running.popleft().result()


def _start(make_tool: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    global _tool
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it too, and ends us
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _tool = make_tool(*arguments)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(task: Any) -> Any:
    return _tool(task)


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Keep the `tokenizers` library, here and in processes to come, from starting a thread for every core."""
    before = os.environ.get("TOKENIZERS_PARALLELISM")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    try:
        yield
    finally:
        if before is None:
            del os.environ["TOKENIZERS_PARALLELISM"]
        else:
            os.environ["TOKENIZERS_PARALLELISM"] = before
