"""What a run tells while it goes on, and what came of it."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Progress:
    """A step was taken."""

    step: int
    steps: int
    losses: Mapping[str, float]  # means of this step
    learning_rate: float
    gradient_norm: float
    tokens_per_second: float
    padding: float  # share of the cells
    seconds_left: float


@dataclass(frozen=True)
class Evaluated:
    """The model was evaluated after `step` steps."""

    step: int
    metrics: Mapping[str, float]
    best: bool  # better than all before, by the metric that decides
    examples: Sequence[Mapping[str, Any]] = ()  # what the model made of a few inputs


@dataclass(frozen=True)
class Note:
    """Something the user should read."""

    text: str


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    step: int
    steps: int
    checkpoint: Path | None  # the newest
    best: Path | None  # the checkpoint with the best evaluation, if one decides
    best_value: float | None
    skipped: int  # steps whose loss or gradient was not finite
    accumulate: int  # parts a process took its batch in at the end
    stopped_early: bool = False  # patience ran out
    signal: int | None = None  # the signal that stopped it

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to train."""
        return self.signal is None

    @property
    def exit_code(self) -> int:
        """0, or what a shell expects of a program that a signal stopped: 130 for SIGINT, 143 for SIGTERM."""
        return 0 if self.signal is None else 128 + self.signal

    def __str__(self) -> str:
        if self.signal is not None:
            name = signal.Signals(self.signal).name
            return f"stopped by {name} after step {self.step} of {self.steps}; it can be resumed"
        early = f", early: {self.steps} were planned" if self.stopped_early else ""
        return f"finished after {self.step} steps{early}"


@dataclass(frozen=True)
class Ended:
    """The run is over, finished or stopped."""

    outcome: Outcome
    seconds: float  # of all its sessions
    report: Path
    model: Path  # where the finished model is, or will be
    remarks: tuple[str, ...] = ()  # what should not be overlooked


Event = Progress | Evaluated | Note | Ended
