"""One optimisation step, exact however its batch is cut into micro-batches and over processes.

    L  =  Σ_objectives  Σ_micro-batches loss / Σ_micro-batches count

The denominators are known before the first forward pass, so each micro-batch's gradient is final when it is added, and
each forward pass begins from a seed of its own: a step is a function of the weights and its number, and a run that
is resumed needs nothing from the steps before, but for what an objective carries on from them.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from heedful.errors import HeedfulError
from heedful.training.contract import Objective, carried_by
from heedful.training.distributed import World
from heedful.training.memory import drop_failed_backward, is_out_of_memory
from heedful.training.optimiser import Optimiser
from heedful.training.precision import in_precision
from heedful.training.timing import Clock
from heedful.training.training_config import Precision, TrainingConfig


class OutOfMemory(Exception):
    """A process had too little memory for its micro-batches; nothing has been changed."""


@dataclass(frozen=True)
class Totals:
    """What all micro-batches of all processes add up to."""

    counts: dict[str, float]
    tokens: int
    padding: int
    stop: bool  # whether a process has been asked to stop


@dataclass(frozen=True)
class Taken:
    """What came out of a step."""

    totals: Totals
    sums: dict[str, float]  # of the losses, over all micro-batches and processes
    gradient_norm: float  # before clipping
    learning_rate: float
    finite: bool  # if not, the weights were left alone

    @property
    def losses(self) -> dict[str, float]:
        """The mean of each loss."""
        return {name: total / max(self.totals.counts[name], 1) for name, total in self.sums.items()}


class Stepper:
    """Takes optimisation steps with a model; `while_backward` is called as the first backward pass of each begins."""

    def __init__(
        self,
        model: nn.Module,
        objective: Objective,
        optimiser: Optimiser,
        config: TrainingConfig,
        world: World,
        clock: Clock,
        while_backward: Callable[[], None],
    ) -> None:
        self._model, self._optimiser = model, optimiser
        self._objective = on_device(objective, config.precision, world.device)
        self.carried = carried_by(objective)
        if self.carried is not None:
            self.carried.to(world.device)
        self._config, self._world, self._clock = config, world, clock
        self._while_backward = while_backward
        self._parameters = list(optimiser.parameters.values())
        self.moving = False  # True from when weights begin to change until whoever counts steps has counted this one

    def take(self, number: int, micro_batches: Sequence[Any], stop: bool = False) -> Taken:
        """Step `number`, counted from 0; a loss or gradient that is not finite leaves weights and moments alone."""
        totals = self._add_up(micro_batches, stop)
        if self.carried is not None:
            self.carried.drop()  # what a step that did not fit into memory has left
        sums = self._agreed(self._gradients(number, micro_batches, totals), totals)
        norm = self._meet()
        finite = math.isfinite(norm) and all(map(math.isfinite, sums.values()))
        rate = self._optimiser.rate(number + 1)
        if finite:
            self.moving = True
            self._optimiser.step(rate)
        if self.carried is not None:
            self.moving = True
            self.carried.keep(finite)
        self._optimiser.forget_gradients()
        self._clock.lap("optimiser")
        return Taken(totals, sums, norm, rate, finite)

    def share_carried(self) -> None:
        """Let every process have all that the objective carries on."""
        if self.carried is not None:
            self.carried.share(self._world.sum_tensors)

    def _add_up(self, micro_batches: Sequence[Any], stop: bool) -> Totals:
        if not micro_batches:
            raise HeedfulError(
                "a step has no micro-batch for this process", remedy="use larger batches or fewer processes"
            )
        names = sorted(micro_batches[0].counts)
        own = [sum(micro_batch.counts[name] for micro_batch in micro_batches) for name in names]
        tokens, padding = (sum(getattr(p, name) for p in micro_batches) for name in ("tokens", "padding"))
        *counts, cells, empty, stops = self._world.sum([*own, tokens, padding, float(stop)])
        return Totals(dict(zip(names, counts, strict=True)), int(cells), int(empty), stops > 0)

    def _gradients(self, number: int, micro_batches: Sequence[Any], totals: Totals) -> dict[str, Tensor] | None:
        """Backpropagate all micro-batches and give the sum of each loss; None if memory was too small."""
        sums: dict[str, Tensor] = {}
        try:
            for index, micro_batch in enumerate(micro_batches):
                seed_dropout(self._config.seed, number, index, self._world.rank, self._world.device)
                losses = self._objective(self._model, micro_batch)
                mean = torch.stack([loss / max(totals.counts[name], 1) for name, loss in losses.items()]).sum()
                self._clock.lap("forward")
                if index == 0:
                    self._while_backward()
                mean.backward()  # type: ignore[no-untyped-call]
                for name, loss in losses.items():
                    sums[name] = sums[name] + loss.detach() if name in sums else loss.detach()
                self._clock.lap("backward")
            return sums
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
        return None

    def _meet(self) -> float:
        """Add the gradients of all processes up and clip them; gives their norm before."""
        self._world.sum_gradients(self._parameters)
        return float(clip_grad_norm_(self._parameters, self._config.clip or math.inf, foreach=True))

    def _agreed(self, sums: dict[str, Tensor] | None, totals: Totals) -> dict[str, float]:
        """The sums over all processes, or OutOfMemory on all of them if it was so on one."""
        names = sorted(totals.counts)
        own = [0.0] * len(names) if sums is None else [float(sums[name]) for name in names]
        failed, *sums_of_all = self._world.sum([float(sums is None), *own])
        if failed:
            self._optimiser.forget_gradients()
            drop_failed_backward(self._world.device)
            raise OutOfMemory
        return dict(zip(names, sums_of_all, strict=True))


def on_device(objective: Objective, precision: Precision, device: str) -> Objective:
    """The objective as a run computes it: in its precision, each micro-batch moved to where the model is."""
    rounded = in_precision(objective, precision)
    return lambda model, micro_batch: rounded(model, micro_batch.to(device))


def seed_dropout(seed: int, number: int, micro_batch: int, rank: int, device: str = "cpu") -> None:
    """Set torch's generators to where this micro-batch of this step begins, whatever went before."""
    digest = hashlib.blake2b(f"{seed} {number} {micro_batch} {rank}".encode(), digest_size=8).digest()
    start = int.from_bytes(digest, "big")
    if device == "cpu":  # torch.manual_seed would also visit back ends that are not there, at 0.2 ms a call
        torch.default_generator.manual_seed(start)
    else:
        torch.manual_seed(start)
