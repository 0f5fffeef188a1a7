"""What the trainer asks of the things it brings together: portions, their source, and an objective.

A loss is a sum, and the portion carries what it is to be divided by. The denominators of a step are added up over
all portions and all processes before the first backward pass, so that cutting a batch differently changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from torch import Tensor, nn


class Portion(Protocol):
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

    def to(self, device: str) -> Portion:
        """The same on another device; the trainer moves each portion when its turn comes."""


class Source(Protocol):
    """Where portions come from."""

    def step(self, number: int, rank: int, world: int, portions: int) -> Sequence[Any]:
        """The portions (at least one) of optimisation step `number`, counted from 0, for process `rank` of `world`.

        A pure function of its arguments, called in a background thread. All ranks and portions together are the same
        batch whatever `world` and `portions` are; where there are too few examples to cut, fewer portions come back.
        """


class Objective(Protocol):
    """What is to become small."""

    def __call__(self, model: nn.Module, portion: Any, /) -> Mapping[str, Tensor]:
        """The sum of each loss over the portion, named as in its counts; both are on the device of the run."""
