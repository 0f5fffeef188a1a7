"""Batches without end: each epoch deals out all examples in an order of its own, by the seed and its number alone."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from functools import lru_cache
from threading import Lock

from heedful.errors import HeedfulError


class Epochs:
    """The batches of examples, by their numbers, that each step of a run gets.

    `dealt` gives those of an epoch and is a pure function; epochs may differ in how many they have.
    """

    def __init__(self, dealt: Callable[[int], list[list[int]]]) -> None:
        self._batches = lru_cache(maxsize=2)(dealt)
        self._starts = [0]  # the first step of each epoch that was asked for so far
        self._growing = Lock()

    def steps_in(self, epochs: float) -> int:
        """How many steps so many epochs take, and at least one."""
        whole = int(epochs)
        with self._growing:
            while len(self._starts) <= whole:
                self._grow()
        rest = epochs - whole
        return max(1, self._starts[whole] + (round(rest * len(self._batches(whole))) if rest else 0))

    def shares(self, number: int, rank: int, world: int, accumulate: int) -> list[list[int]]:
        """What one of `world` processes takes of a step, in up to `accumulate` parts; together always the same.

        Each process has as many parts: those that gather a model's slices together do so once a part.
        """
        batch = self._batch(number, world)
        cuts = world * min(accumulate, len(batch) // world)
        return [batch[i::cuts] for i in range(rank, cuts, world)]

    def check(self, world: int, steps: int) -> None:
        """Refuse, before training, a number of processes that is too great for a batch of the first epoch."""
        for number in range(min(steps, self.steps_in(1))):
            self._batch(number, world)

    def _batch(self, number: int, world: int) -> list[int]:
        with self._growing:
            while self._starts[-1] <= number:
                self._grow()
        epoch = bisect_right(self._starts, number) - 1
        batch = self._batches(epoch)[number - self._starts[epoch]]
        if len(batch) < world:  # refused on all of them, so that none waits for the others
            raise HeedfulError(
                f"the batch of step {number + 1} is too small for {world} processes (items: {len(batch)})",
                remedy="use larger batches or fewer processes",
            )
        return batch

    def _grow(self) -> None:
        epoch = len(self._starts) - 1
        self._starts.append(self._starts[epoch] + len(self._batches(epoch)))
