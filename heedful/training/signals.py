"""SIGINT and SIGTERM: the first asks to stop after the step in hand, the second stops at once.

An evaluation, which changes nothing, is not waited for: the first signal breaks it off.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

_STOPPING = b"\nstopping: after the step in hand a checkpoint will be written; a second signal stops at once, without\n"
_BREAKING_OFF = b"\nstopping: this is broken off, and then the last step is saved; a second signal stops at once\n"


class BrokenOff(BaseException):
    """What was going on, and changes nothing, is not finished because a signal asks to stop."""


class StopSignals:
    """Within a `with` block, `received` is the number of the signal that asked to stop, or None."""

    def __init__(self) -> None:
        self.received: int | None = None
        self._break_off = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopSignals:
        # Python allows handlers in the main thread alone; elsewhere whoever runs that thread keeps its own.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def breaking_off(self) -> Iterator[None]:
        """Within this block a signal, also one that came before, raises `BrokenOff`."""
        self._break_off = True
        try:
            if self.received is not None:
                raise BrokenOff
            yield
        finally:
            self._break_off = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None:
            os._exit(128 + number)
        self.received = number
        # Not print: the signal may have come in the middle of another print.
        os.write(2, _BREAKING_OFF if self._break_off else _STOPPING)
        if self._break_off:
            self._break_off = False
            raise BrokenOff
