"""What the trainer asks of the things it brings together: micro-batches, their source, and an objective.

A loss is a sum, and the micro-batch carries what it is to be divided by. The denominators of a step are added up over
all micro-batches and all processes before the first backward pass, so that cutting a batch differently changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from torch import Tensor, nn


class MicroBatch(Protocol):
    """A part of a batch, small enough for one forward and backward pass."""

    @property
    def counts(self) -> Mapping[str, int]:
        """How many things each loss is summed over, such as {"mlm": 77, "nsp": 32}; the names never change."""

    @property
    def tokens(self) -> int:
        """How many real tokens there are."""

    @property
    def padding(self) -> int:
        """How many cells are padding and nothing else."""

    def to(self, device: str) -> MicroBatch:
        """The same on another device; the trainer moves each micro-batch when its turn comes."""


class Source(Protocol):
    """Where micro-batches come from. One with a `fingerprint` of its data is held against those of other processes."""

    def step(self, number: int, rank: int, world: int, accumulate: int) -> Sequence[Any]:
        """The micro-batches (at least one) of step `number`, counted from 0, for process `rank` of `world`.

        A pure function of its arguments, called in a background thread. All ranks and micro-batches together are the
        same batch whatever `world` and `accumulate` are; where there are too few examples to cut, fewer come back, and
        to every rank as many.
        """


class CarriedState(Protocol):
    """What an objective carries from step to step; `heedful.nn.carried.Carried` is one."""

    tensors: dict[str, Tensor]  # kept in checkpoints, filled in place when a run is resumed

    def to(self, device: str) -> None:
        """Move it to where the model is."""

    def drop(self) -> None:
        """The step in progress was not taken."""

    def keep(self, finite: bool) -> None:
        """The step in progress was taken; if it was not `finite`, the weights were left alone."""

    def share(self, add_up: Callable[[Sequence[Tensor]], None]) -> None:
        """Give every process what each of them has; `add_up` sums tensors over all, in place."""


class Objective(Protocol):
    """What is to become small. One that carries a state from step to step has it as `carried`, a `CarriedState`.

    One that moves the weights itself, because a gradient of all of them would be mostly zeros, has an `update`: a
    function of model, micro-batch and rate that gives each loss as its sum and what it is to be divided by. The
    parameters of its model need no gradient.
    """

    def __call__(self, model: nn.Module, micro_batch: Any, /) -> Mapping[str, Tensor]:
        """The sum of each loss over the micro-batch, named as in its counts; both are on the device of the run."""


def carried_by(objective: Objective) -> CarriedState | None:
    """The state that an objective carries from step to step, None for one whose steps stand for themselves."""
    found: CarriedState | None = getattr(objective, "carried", None)
    return found


def update_of(objective: Objective) -> Any:
    """The `update` of an objective that moves the weights itself, None for one that leaves it to the optimiser."""
    return getattr(objective, "update", None)
