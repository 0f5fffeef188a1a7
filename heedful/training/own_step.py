"""Steps of an objective that moves the weights itself, as word2vec's does: a few rows at a time, many times a step.

Everything around a step (its rate, the journal, checkpoints, signals) is as for any other. Several processes each go
over their part of the batch from the same weights, and go on from the mean of what they have come to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from heedful.checkpoints.slices import is_sliced
from heedful.training.contract import update_of
from heedful.training.sharding import ShardedStepper
from heedful.training.step import Stepper, Taken, Totals, seed_dropout


class OwnStepper(Stepper):
    """Takes the steps that the objective's `update` makes of the micro-batches."""

    def __init__(self, model: nn.Module, objective: Any, *rest: Any) -> None:
        super().__init__(model, objective, *rest)
        self._update = update_of(objective)

    def take(self, number: int, micro_batches: Sequence[Any], stop: bool = False) -> Taken:
        """Step `number`, counted from 0; weights that are no longer finite are told by their loss."""
        totals, rate = self._add_up(micro_batches, stop), self._optimiser.rate(number + 1)
        self.moving = True
        sums: dict[str, float] = {}
        counts: dict[str, float] = {}
        for index, micro_batch in enumerate(micro_batches):
            seed_dropout(self._config.seed, number, index, self._world.rank, self._world.device)
            if index == 0:
                self._while_backward()
            found = self._update(self._model, micro_batch.to(self._world.device), rate)
            for name, (total, count) in found.items():
                sums[name], counts[name] = sums.get(name, 0.0) + total, counts.get(name, 0.0) + count
        self._clock.lap("forward")
        self._average()
        names = sorted(sums)
        added = self._world.sum([*(sums[name] for name in names), *(counts[name] for name in names)])
        sums = dict(zip(names, added, strict=False))
        counts = dict(zip(names, added[len(names) :], strict=True))
        self._clock.lap("optimiser")
        told = Totals({**totals.counts, **counts}, totals.tokens, totals.padding, totals.stop)
        return Taken(told, sums, 0.0, rate, all(map(math.isfinite, sums.values())))

    def _average(self) -> None:
        """Give every process the mean of all processes' weights."""
        if self._world.size > 1:
            weights = [parameter.data for parameter in self._model.parameters()]
            self._world.sum_tensors(weights)
            with torch.no_grad():
                for tensor in weights:
                    tensor /= self._world.size


def stepper_for(model: nn.Module, objective: Any, *rest: Any) -> Stepper:
    """The stepper that suits an objective; `rest` as for `Stepper`."""
    if update_of(objective) is not None:
        return OwnStepper(model, objective, *rest)
    return (ShardedStepper if any(map(is_sliced, model.parameters())) else Stepper)(model, objective, *rest)
