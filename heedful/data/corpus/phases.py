"""What a trainer is fed in pretraining, whatever the objective: phase after phase, each with examples of one length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from heedful.data.shards import Array
from heedful.errors import HeedfulError


class Place(NamedTuple):
    """Where a step is in a run."""

    step: int  # since its phase began
    first: int  # how many examples the steps before it had, in all phases
    batch_size: int  # how many it has itself


class Batches(Protocol):
    """The batches of one phase. Examples come by their number; or text goes on from step to step, a lane for each row.

    A micro-batch is what `heedful.training.contract` asks for.
    """

    def take(self, place: Place, rows: Array) -> Any:
        """Some rows, of 0 … batch_size - 1, of the batch at a place as a micro-batch: a pure function of the two."""
        ...


class Phase(NamedTuple):
    """So many steps with batches of so many examples, which are of one length."""

    batches: Batches
    steps: int
    batch_size: int


class PretrainingSource:
    """The batches of a run: phase after phase, step after step."""

    def __init__(self, phases: Sequence[Phase], fingerprint: str = "") -> None:
        """`fingerprint` tells the data from any other."""
        if not phases:
            raise HeedfulError("no phase to train in", remedy="give at least one length and its steps")
        self.phases, self.fingerprint = phases, fingerprint

    @property
    def steps(self) -> int:
        """The steps of all phases."""
        return sum(phase.steps for phase in self.phases)

    def step(self, number: int, rank: int = 0, world: int = 1, accumulate: int = 1) -> list[Any]:
        """The micro-batches of step `number` for one of `world` processes.

        All ranks and micro-batches together always hold the same rows. Past the last step its phase goes on.
        """
        phase, place = self._place(number)
        if phase.batch_size < world * accumulate:
            raise HeedfulError(
                f"{phase.batch_size} examples a step cannot be dealt to {world} processes × {accumulate} micro-batches",
                remedy="use a larger batch, fewer processes, or a lower `accumulate`",
            )
        rows = np.arange(phase.batch_size)
        mine = (rows[rank * accumulate + micro_batch :: world * accumulate] for micro_batch in range(accumulate))
        return [phase.batches.take(place, some) for some in mine]

    def _place(self, number: int) -> tuple[Phase, Place]:
        """The phase of a step and its place; examples are counted on from phase to phase."""
        first = 0
        for phase in self.phases[:-1]:
            if number < phase.steps:
                return phase, Place(number, first + number * phase.batch_size, phase.batch_size)
            number -= phase.steps
            first += phase.steps * phase.batch_size
        last = self.phases[-1]
        return last, Place(number, first + number * last.batch_size, last.batch_size)
