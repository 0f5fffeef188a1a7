"""How a command trains: in a process that does nothing else, shown on the terminal, and stopped by signals."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from heedful.cli.training_display import TrainingDisplay
from heedful.runs.run import Stage
from heedful.training.process import prepare_process
from heedful.training.run_folder import RunFolder
from heedful.training.signals import StopSignals

R = TypeVar("R")


def trained(run: Callable[[Stage], R], output: str, resume: bool) -> R:
    """Carry out a run in a folder."""
    prepare_process()
    with TrainingDisplay() as display:
        return run(Stage(RunFolder(output), resume, display.show, signals=StopSignals()))
