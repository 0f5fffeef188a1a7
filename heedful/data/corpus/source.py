"""What a trainer is fed: the micro-batches of any step, and the held-out examples, each a function of its number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from heedful.data.batching import groups_of
from heedful.data.corpus.examples import Examples
from heedful.data.shards import Array
from heedful.errors import HeedfulError
from heedful.schema import Batch


class NumberedExamples(Protocol):
    """Examples made on the fly or written ahead."""

    def __len__(self) -> int: ...

    def take(self, numbers: Array) -> Examples:
        """The examples of these numbers."""
        ...


@dataclass(frozen=True)
class PretrainingMicroBatch:
    """A micro-batch: M of its tokens are to be predicted and, unless there is no such task, B pairs to be judged."""

    batch: Batch
    masked: Tensor  # (M,) flat places
    labels: Tensor  # (M,) the ids that stood there
    nsp: Tensor | None  # (B,) 0 = is next
    padding: int  # tokens that a padded batch of this micro-batch would add

    @property
    def counts(self) -> Mapping[str, int]:
        """What the sum of each loss is to be divided by."""
        counts = {"mlm": len(self.labels)}
        return counts if self.nsp is None else {**counts, "nsp": len(self.nsp)}

    @property
    def tokens(self) -> int:
        """N, the tokens in the batch."""
        return len(self.batch.ids)

    def to(self, device: str) -> PretrainingMicroBatch:
        """The same on another device."""
        nsp = None if self.nsp is None else self.nsp.to(device)
        return PretrainingMicroBatch(
            self.batch.to(device), self.masked.to(device), self.labels.to(device), nsp, self.padding
        )


class Phase(NamedTuple):
    """So many steps with batches of so many examples, which are of one length."""

    examples: NumberedExamples
    steps: int
    batch_size: int


class PretrainingSource:
    """The batches of a run: phase after phase, example after example."""

    def __init__(self, phases: Sequence[Phase]) -> None:
        if not phases:
            raise HeedfulError("no phase to train in", remedy="give at least one length and its steps")
        self.phases = phases

    @property
    def steps(self) -> int:
        """The steps of all phases."""
        return sum(phase.steps for phase in self.phases)

    def step(self, number: int, rank: int = 0, world: int = 1, accumulate: int = 1) -> list[PretrainingMicroBatch]:
        """The micro-batches of step `number` for one of `world` processes.

        All ranks and micro-batches together always hold the same examples. Past the last step its phase goes on.
        """
        phase, first = self._place(number)
        if phase.batch_size < world * accumulate:
            raise HeedfulError(
                f"{phase.batch_size} examples a step cannot be dealt to {world} processes × {accumulate} micro-batches",
                remedy="use a larger batch, fewer processes, or a lower `accumulate`",
            )
        numbers = np.arange(first, first + phase.batch_size)
        mine = (numbers[rank * accumulate + micro_batch :: world * accumulate] for micro_batch in range(accumulate))
        return [as_micro_batch(phase.examples.take(some)) for some in mine]

    def _place(self, number: int) -> tuple[Phase, int]:
        """The phase of a step and the number of its first example; numbers go on from phase to phase."""
        first = 0
        for phase in self.phases[:-1]:
            if number < phase.steps:
                return phase, first + number * phase.batch_size
            number -= phase.steps
            first += phase.steps * phase.batch_size
        return self.phases[-1], first + number * self.phases[-1].batch_size


def held_out_micro_batches(
    examples: NumberedExamples, batch_size: int, most: int | None = None
) -> Iterator[PretrainingMicroBatch]:
    """The first `most` held-out examples (or all, once) in batches, the same every time."""
    total = len(examples) if most is None else min(most, len(examples))
    for start in range(0, total, batch_size):
        yield as_micro_batch(examples.take(np.arange(start, min(start + batch_size, total))))


def as_micro_batch(examples: Examples) -> PretrainingMicroBatch:
    """The same examples as tensors."""
    lengths = tuple(examples.lengths.tolist())
    batch = Batch(
        ids=torch.from_numpy(examples.ids),
        segments=torch.from_numpy(examples.segments),
        positions=torch.from_numpy(examples.positions),
        lengths=lengths,
        groups=groups_of(lengths),
    )
    return PretrainingMicroBatch(
        batch=batch,
        masked=torch.from_numpy(examples.masked),
        labels=torch.from_numpy(examples.labels),
        nsp=None if examples.nsp is None else torch.from_numpy(examples.nsp),
        padding=max(lengths) * len(lengths) - sum(lengths),
    )
