"""SIGINT and SIGTERM: the first asks to stop after the step in hand, the second stops at once."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

_STOPPING = b"\nstopping: the step is finished and a checkpoint written; a second signal stops at once\n"


class StopSignals:
    """Within a `with` block, `received` is the number of the signal that asked to stop, or None."""

    def __init__(self) -> None:
        self.received: int | None = None
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

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None:
            os._exit(128 + number)
        self.received = number
        # Not print: the signal may have come in the middle of another print.
        os.write(2, _STOPPING)
