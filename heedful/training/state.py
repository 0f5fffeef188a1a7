"""What a run has to remember between two steps, beside weights and moments."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from heedful.errors import HeedfulError
from heedful.training.step import Taken
from heedful.training.training_config import TrainingConfig


@dataclass
class LossWindow:
    """Sums over the steps since the last line in the journal."""

    steps: int = 0
    tokens: int = 0
    padding: int = 0
    sums: dict[str, float] = field(default_factory=dict)
    counts: dict[str, float] = field(default_factory=dict)

    def add(self, taken: Taken) -> None:
        """Add a step; the losses of one that was not finite are left out."""
        self.steps += 1
        self.tokens += taken.totals.tokens
        self.padding += taken.totals.padding
        if taken.finite:
            for name, total in taken.sums.items():
                self.sums[name] = self.sums.get(name, 0.0) + total
                self.counts[name] = self.counts.get(name, 0.0) + taken.totals.counts[name]

    @property
    def losses(self) -> dict[str, float]:
        """The mean of each loss."""
        return {name: total / max(self.counts[name], 1) for name, total in self.sums.items()}


@dataclass
class TrainerState:
    """The counters of a run, as they stand in a checkpoint."""

    FORMER_NAMES: ClassVar[Mapping[str, str]] = {"portions": "accumulate"}  # in checkpoints of version 0.1

    step: int = 0
    accumulate: int = 1
    tokens: int = 0
    skipped: int = 0
    skipped_in_a_row: int = 0
    evaluated: int = 0  # the step of the last evaluation
    best_step: int | None = None
    best_value: float | None = None
    without_best: int = 0  # evaluations since the best one
    arithmetic: str = ""  # the kind of processor that has computed, see heedful.training.processor
    window: LossWindow = field(default_factory=LossWindow)

    def add(self, taken: Taken) -> None:
        """Count a step."""
        self.step += 1
        self.tokens += taken.totals.tokens
        self.skipped += not taken.finite
        self.skipped_in_a_row = 0 if taken.finite else self.skipped_in_a_row + 1
        self.window.add(taken)

    def judge(self, value: float, higher_is_better: bool) -> bool:
        """Count an evaluation; gives whether it is the best so far.

        Of equally good weights the later ones are the best, which have seen more; but patience is for better ones.
        """
        sign = 1 if higher_is_better else -1
        before = -math.inf if self.best_value is None else sign * self.best_value
        self.without_best = 0 if sign * value > before else self.without_best + 1
        best = sign * value >= before
        if best:
            self.best_step, self.best_value = self.step, value
        return best

    def patience_over(self, config: TrainingConfig) -> bool:
        """Whether so many evaluations brought nothing better that training ends."""
        return config.patience > 0 and self.without_best >= config.patience


def score_named(name: str, metrics: Mapping[str, float]) -> float:
    """The score by which the best weights are told."""
    if name not in metrics:
        raise HeedfulError(f"the evaluation has no number {name!r}", remedy=f"choose `best` from {', '.join(metrics)}")
    return metrics[name]
