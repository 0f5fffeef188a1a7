"""Examples for models that read from left to right: stretches of the stream, and what comes after each token.

Windows are independent and come in a random order. Lanes go on from step to step, so that a state can be carried:

    stream   a b c d e f g h i j k l        two lanes, steps of three tokens
    step 0   a b c      g h i               labels  b c d   h i j
    step 1   d e f      j k l               labels  e f g   k l …
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from heedful.data.batching import groups_of
from heedful.data.chance import below, shuffled
from heedful.data.corpus.phases import Place
from heedful.data.corpus.recipe import ExampleRecipe
from heedful.data.corpus.stream import TokenStream
from heedful.data.shards import Array
from heedful.errors import HeedfulError
from heedful.schema import Batch


@dataclass(frozen=True)
class CausalRecipe(ExampleRecipe):
    """Stretches of `max_length` tokens in a random order."""

    objective: str = "causal"


@dataclass(frozen=True)
class LaneRecipe(ExampleRecipe):
    """Stretches of `max_length` tokens, each the continuation of the one before."""

    objective: str = "bptt"


@dataclass(frozen=True)
class CausalMicroBatch:
    """B stretches of equal length, what comes after each of the N tokens, and where lanes go on or begin."""

    batch: Batch
    labels: Tensor  # (N,)
    lanes: Tensor  # (B,)
    fresh: Tensor  # (B,) whether the text of a lane begins here
    padding: int = 0

    @property
    def counts(self) -> Mapping[str, int]:
        """What the sum of the loss is to be divided by."""
        return {"lm": len(self.labels)}

    @property
    def tokens(self) -> int:
        """N."""
        return len(self.labels)

    def to(self, device: str) -> CausalMicroBatch:
        """The same on another device."""
        labels, lanes, fresh = (x.to(device) for x in (self.labels, self.lanes, self.fresh))
        return replace(self, batch=self.batch.to(device), labels=labels, lanes=lanes, fresh=fresh)


class Windows:
    """Stretches by their number: each time through the stream they are cut elsewhere and shuffled anew."""

    def __init__(self, stream: TokenStream, length: int, seed: int, where: object = None) -> None:
        self.stream, self.length, self.seed = stream, length, seed
        self.count = (len(stream) - 1) // length - 1  # whatever the shift of a round, so many fit
        if self.count < 1:
            raise HeedfulError(
                f"the text has {len(stream)} tokens, too few for examples of {length}",
                where=where,
                remedy="use shorter `phases`, or a larger corpus",
            )

    def take(self, place: Place, rows: Array) -> CausalMicroBatch:
        """These rows of the batch at a place, each by itself."""
        numbers = place.first + rows
        starts = [self._start(int(number)) for number in numbers]
        return micro_batch(self.stream, np.array(starts), self.length, rows, np.ones(len(rows), bool))

    def _start(self, number: int) -> int:
        turn, place = divmod(number, self.count)
        shift = int(below(self.length, self.seed, turn, 0)[0])
        return shift + self.length * int(shuffled(np.array([place]), self.count, self.seed, turn, 1)[0])


class Lanes:
    """A lane for each row of the batch, which is as long as the others and goes on from step to step."""

    def __init__(self, stream: TokenStream, length: int, where: object = None) -> None:
        self.stream, self.length, self.where = stream, length, where

    def take(self, place: Place, rows: Array) -> CausalMicroBatch:
        """These lanes at a step; at their end they begin again."""
        reach = (len(self.stream) - 1) // place.batch_size
        steps = reach // self.length
        if steps < 1:
            raise HeedfulError(
                f"{place.batch_size} lanes of {self.length} tokens are more than the text has, {len(self.stream)}",
                where=self.where,
                remedy="use a smaller `batch_size`, shorter `phases`, or a larger corpus",
            )
        turn = place.step % steps
        starts = rows * reach + turn * self.length
        return micro_batch(self.stream, starts, self.length, rows, np.full(len(rows), turn == 0))


def micro_batch(stream: TokenStream, starts: Array, length: int, lanes: Array, fresh: Array) -> CausalMicroBatch:
    """Stretches of one length as a micro-batch."""
    read = np.stack([stream.read(int(start), int(start) + length + 1) for start in starts])  # (B, length + 1)
    lengths = (length,) * len(starts)
    ids = torch.from_numpy(np.ascontiguousarray(read[:, :-1])).flatten()
    batch = Batch(
        ids=ids,
        segments=torch.zeros_like(ids),
        positions=torch.arange(length).repeat(len(starts)),
        lengths=lengths,
        groups=groups_of(lengths),
    )
    labels = torch.from_numpy(np.ascontiguousarray(read[:, 1:])).flatten()
    return CausalMicroBatch(batch, labels, torch.from_numpy(lanes), torch.from_numpy(fresh))


def held_out_windows(
    stream: TokenStream, length: int, batch_size: int, most: int, lanes: bool
) -> Iterator[CausalMicroBatch]:
    """About `most` stretches of held-out text in batches, the same every time: in lanes, or one after the other."""
    length = min(length, max(len(stream) - 1, 1))
    count = min(most, (len(stream) - 1) // length)
    rows = min(batch_size, count)
    if lanes:
        for turn in range(count // rows if rows else 0):
            yield Lanes(stream, length).take(Place(turn, 0, rows), np.arange(rows))
        return
    for first in range(0, count, max(rows, 1)):
        numbers = np.arange(first, min(first + rows, count))
        yield micro_batch(stream, numbers * length, length, numbers - first, np.ones(len(numbers), bool))
