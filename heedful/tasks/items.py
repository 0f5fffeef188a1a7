"""Batches of items: laid out flat, dealt out epoch by epoch for training, and run through a model for answers."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from itertools import accumulate, chain

import numpy as np
import torch
from torch import Tensor, nn

from heedful.data.batching import TOKENS_PER_BATCH, cut_by_tokens, cut_in_order, flat_batch, without_small_tail
from heedful.data.epochs import Epochs
from heedful.errors import HeedfulError
from heedful.schema import Selection
from heedful.tasks.task import Item


@dataclass(frozen=True)
class ItemMicroBatch:
    """A micro-batch of items."""

    selection: Selection
    targets: Tensor  # those of all items in a row
    weight: int  # what the sum of the loss is to be divided by
    tokens: int
    padding: int  # tokens that a padded batch of this micro-batch would add
    name: str = "loss"

    @property
    def counts(self) -> Mapping[str, int]:
        """The divisor of the loss, by its name."""
        return {self.name: self.weight}

    def to(self, device: str) -> ItemMicroBatch:
        """The same on another device."""
        return replace(self, selection=self.selection.to(device), targets=self.targets.to(device))


@dataclass(frozen=True)
class JointMicroBatch:
    """A whole batch whose loss cannot be cut, in parts whose outputs can be computed one after the other."""

    parts: tuple[ItemMicroBatch, ...]

    @property
    def counts(self) -> Mapping[str, int]:
        """The divisor of the loss, by its name."""
        return {self.parts[0].name: sum(part.weight for part in self.parts)}

    @property
    def tokens(self) -> int:
        """How many tokens there are."""
        return sum(part.tokens for part in self.parts)

    @property
    def padding(self) -> int:
        """What padded batches of the parts would add."""
        return sum(part.padding for part in self.parts)

    @property
    def at_once(self) -> int:
        """How many cells a padded batch of the largest part would have: memory follows it."""
        return max(part.tokens + part.padding for part in self.parts)

    def to(self, device: str) -> JointMicroBatch:
        """The same on another device."""
        return JointMicroBatch(tuple(part.to(device) for part in self.parts))


# The states of a frozen encoder at the rows of each window of an item, computed beforehand.
Known = Sequence[Sequence[Tensor]]


def select(items: Sequence[Item], known: Known | None = None) -> Selection:
    """The windows of items as one flat batch, the longest first; the rows keep the order of the items."""
    windows = [window for item in items for window in item.windows]
    order = sorted(range(len(windows)), key=lambda i: -len(windows[i].ids))
    batch = flat_batch([windows[i].ids for i in order], [windows[i].segments for i in order])
    starts = [0] * len(windows)
    for place, start in zip(order, accumulate(batch.lengths, initial=0), strict=False):
        starts[place] = start
    rows = [start + row for start, window in zip(starts, windows, strict=True) for row in window.rows]
    states = None if known is None else torch.cat([state for windows in known for state in windows])
    return Selection(batch, torch.tensor(rows, dtype=torch.long), tuple(len(window.rows) for window in windows), states)


def micro_batch_of(items: Sequence[Item], name: str, known: Known | None = None) -> ItemMicroBatch:
    """Items with their targets as tensors."""
    selection = select(items, known)
    lengths = selection.batch.lengths
    return ItemMicroBatch(
        selection=selection,
        targets=torch.tensor(list(chain.from_iterable(item.target for item in items))),
        weight=sum(item.weight for item in items),
        tokens=sum(lengths),
        padding=max(lengths) * len(lengths) - sum(lengths),
        name=name,
    )


class ItemSource:
    """Training batches without end: each epoch has all items in an order of its own, by the seed alone."""

    def __init__(
        self,
        items: Sequence[Item],
        name: str,
        batch_size: int,
        seed: int,
        by_tokens: bool = False,
        known: Known | None = None,
        whole: bool = False,
    ) -> None:
        """`batch_size` counts items, or tokens with `by_tokens`; `known` are the states of a frozen encoder.

        With `whole` a batch stays one for its loss, and only its outputs are computed in parts.
        """
        self.items, self.name, self.batch_size, self.seed, self.by_tokens = items, name, batch_size, seed, by_tokens
        self.known, self.whole = known, whole
        self.epochs = Epochs(self._shuffled)
        if not items:
            raise HeedfulError("there is nothing to train on", remedy="give training data with examples")

    def steps_in(self, epochs: float) -> int:
        """How many steps so many epochs take, and at least one."""
        return self.epochs.steps_in(epochs)

    def step(
        self, number: int, rank: int = 0, world: int = 1, accumulate: int = 1
    ) -> list[ItemMicroBatch] | list[JointMicroBatch]:
        """The micro-batches of a step for one of `world` processes; together they are always the same items."""
        parts = [self._micro_batch(share) for share in self.epochs.shares(number, rank, world, accumulate)]
        return [JointMicroBatch(tuple(parts))] if self.whole else parts

    @cached_property
    def fingerprint(self) -> str:
        """What tells this data from any other."""
        digest = blake2b(digest_size=16)
        for item in self.items:
            for window in item.windows:
                digest.update(array("q", [len(window.ids), *window.ids, *window.segments, *window.rows]))
            digest.update(array("d", [len(item.target), *item.target]))
        return digest.hexdigest()

    def check(self, world: int, steps: int) -> None:
        """Refuse, before training, a number of processes that is too great for a batch of the first epoch."""
        if self.whole and world > 1:
            what = f"a batch whose loss is that of all its items cannot be shared by {world} processes"
            raise HeedfulError(what, remedy="train in one process; accumulate makes room for large batches")
        self.epochs.check(world, steps)

    def _micro_batch(self, numbers: Sequence[int]) -> ItemMicroBatch:
        known = None if self.known is None else [self.known[i] for i in numbers]
        return micro_batch_of([self.items[i] for i in numbers], self.name, known)

    def _shuffled(self, epoch: int) -> list[list[int]]:
        order: list[int] = np.random.default_rng([self.seed, epoch]).permutation(len(self.items)).tolist()
        sizes = [item.tokens if self.by_tokens else 1 for item in self.items]
        return without_small_tail(cut_in_order(order, sizes, self.batch_size))


Mapper = Callable[[Callable[[list[int]], list[list[Tensor]]], Iterable[list[int]]], Iterable[list[list[Tensor]]]]


def outputs_of(
    model: nn.Module, items: Sequence[Item], mapper: Mapper = map, known: Known | None = None
) -> list[list[Tensor]]:
    """The outputs (rows, K) of each window of each item, in order.

    Batches are computed one after the other, or as the `mapper` does it.
    """
    device = str(next(model.parameters()).device)

    def compute(batch: list[int]) -> list[list[Tensor]]:
        chosen = [items[i] for i in batch]
        selection = select(chosen, None if known is None else [known[i] for i in batch]).to(device)
        with torch.inference_mode():
            pieces = iter(model(selection).cpu().split(selection.counts))
        return [[next(pieces) for _ in item.windows] for item in chosen]

    batches = cut_by_tokens([item.tokens for item in items], TOKENS_PER_BATCH)
    found: dict[int, list[Tensor]] = {}
    for batch, outputs in zip(batches, mapper(compute, batches), strict=True):
        found.update(zip(batch, outputs, strict=True))
    return [found[i] for i in range(len(items))]
