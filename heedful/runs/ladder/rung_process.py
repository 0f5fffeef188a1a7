"""The process of one rung: `python -m heedful.runs.ladder.rung_process`.

The first line of its input says what to do. It writes what happens to its output, a JSON object a line. It ends
when its input does, because then whoever started it is no more.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from heedful.runs.ladder.rung_run import RungRun
from heedful.runs.ladder.rungs import rungs_of
from heedful.runs.ladder.settings import LadderSettings
from heedful.runs.ladder.trials import Stopped
from heedful.runs.run import Stage
from heedful.runs.settings import settings_from
from heedful.training.events import Ended, Evaluated, Event, Note, Progress
from heedful.training.process import prepare_process
from heedful.training.run_folder import RunFolder
from heedful.training.signals import StopSignals

SECONDS_BETWEEN = 0.5  # steps that are told


class Teller:
    """Writes events for whoever started the process."""

    def __init__(self) -> None:
        self._last = 0.0

    def tell(self, event: Event) -> None:
        """Write one event, of steps some."""
        if isinstance(event, Progress):
            if time.monotonic() - self._last > SECONDS_BETWEEN or event.step == event.steps:
                self._last = time.monotonic()
                _write({"progress": asdict(event)})
        elif isinstance(event, Note):
            _write({"note": event.text})
        elif isinstance(event, Evaluated):
            _write({"note": "  ".join(f"{name} {value:.4g}" for name, value in event.metrics.items())})
        elif isinstance(event, Ended):
            _write({"note": "\n".join([str(event.outcome), *(f"remark: {remark}" for remark in event.remarks)])})


def _write(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def _end_with_input() -> None:
    while os.read(0, 1024):
        pass
    os._exit(1)


def main() -> int:
    """Carry out what the input says; gives the exit code."""
    job = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_input, daemon=True).start()
    prepare_process()
    settings = settings_from(LadderSettings, job["settings"])
    (rung,) = rungs_of(job["model"])
    folder = RunFolder(Path(settings.output) / rung.name)
    try:
        RungRun(rung, settings, Stage(folder, True, Teller().tell, job["tensorboard"], StopSignals())).go()
    except Stopped as stopped:
        return 128 + stopped.signal
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
