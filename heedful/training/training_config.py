"""What a training run is told: the recipe, and how often to look up from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from heedful.errors import HeedfulError

Precision = Literal["float32", "bfloat16"]
Schedule = Literal["linear", "cosine", "inverse_sqrt", "constant"]


@dataclass(frozen=True)
class TrainingConfig:
    """The recipe of a run; the defaults are BERT's: Adam 1e-4 (0.9, 0.999), decay 0.01, warm-up, then linear decay."""

    FORMER_NAMES: ClassVar[Mapping[str, str]] = {"portions": "accumulate"}  # in run folders of version 0.1

    steps: int
    learning_rate: float = 1e-4
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-6
    weight_decay: float = 0.01  # of matrices; biases and norms are never decayed
    warmup: float = 0.1  # below 1 a share of the steps, from 1 on a number of steps
    schedule: Schedule = "linear"
    clip: float = 1.0  # largest norm of the gradient; 0 is no clipping
    accumulate: int = 1  # micro-batches a process takes its batch in, one after the other
    precision: Precision = "float32"  # of matmuls in training: bfloat16 is mixed precision
    seed: int = 0
    log_every: int = 10
    eval_every: int = 0  # 0 is at the end only
    checkpoint_every: int = 1000  # 0 is at the end only
    keep_last: int = 2
    best: str | None = None  # the evaluation's number that decides which checkpoint is the best
    higher_is_better: bool = False
    patience: int = 0  # evaluations in a row without a new best before training ends; 0 is never
    restore_best: bool = False  # end with the best weights, not the last
    non_finite_limit: int = 5  # steps in a row whose loss or gradient may be infinite or not a number
    shard: bool = False  # every process has a slice of each parameter, gradient and moment, and not all of them
    timeout_minutes: float = 30.0  # how long a process waits for the others

    def __post_init__(self) -> None:
        for name in ("steps", "accumulate", "log_every", "keep_last", "non_finite_limit"):
            _check(name, getattr(self, name), at_least=1)
        for name in ("learning_rate", "eps", "weight_decay", "warmup", "clip"):
            _check(name, getattr(self, name), at_least=0)
        for name in ("eval_every", "checkpoint_every", "patience"):
            _check(name, getattr(self, name), at_least=0)
        if (self.patience or self.restore_best) and self.best is None:
            raise HeedfulError("patience and restore_best need to know what is best", remedy="name a metric in `best`")

    @property
    def warmup_steps(self) -> int:
        """The warm-up as a number of steps."""
        return round(self.warmup * self.steps) if self.warmup < 1 else min(round(self.warmup), self.steps)


def _check(name: str, value: float, at_least: int) -> None:
    if not value >= at_least:
        raise HeedfulError(f"{name} is {value}", remedy=f"{name} is at least {at_least}")
