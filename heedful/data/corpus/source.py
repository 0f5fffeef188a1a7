"""Masked examples as micro-batches: those of any step, and the held-out ones, each a function of its number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from heedful.data.batching import groups_of
from heedful.data.corpus.examples import Examples
from heedful.data.corpus.phases import Place
from heedful.data.shards import Array
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


class MaskedBatches:
    """Batches of examples by their number, which goes on from step to step and from phase to phase."""

    def __init__(self, examples: NumberedExamples) -> None:
        self.examples = examples

    def take(self, place: Place, rows: Array) -> PretrainingMicroBatch:
        """These rows of the batch at a place."""
        return as_micro_batch(self.examples.take(place.first + rows))


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
