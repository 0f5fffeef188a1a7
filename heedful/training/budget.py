"""A budget of time as a number of steps, by a short measurement on a copy that is thrown away."""

from __future__ import annotations

import copy
import statistics
import time
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import pairwise

import torch
from torch import nn

from heedful.training.contract import Objective, Source
from heedful.training.distributed import World, joined
from heedful.training.optimiser import Optimiser
from heedful.training.own_step import stepper_for
from heedful.training.prefetch import Prefetch
from heedful.training.step import OutOfMemory
from heedful.training.timing import Clock
from heedful.training.training_config import TrainingConfig

WARM_UP = 4  # the first steps meet shapes for which the machine's kernels are yet to be made
FEWEST, MOST = 6, 40  # steps to measure, as many as
ENOUGH = 10.0  # seconds hold
TRIAL_STEPS = WARM_UP + MOST
RESERVE = 0.05


def steps_for(
    seconds: float,
    model: nn.Module,
    objective: Objective,
    source: Source,
    config: TrainingConfig,
    first: int = 0,
    device: str | None = None,
) -> int:
    """How many steps fit into `seconds` when a twentieth is kept for evaluation and checkpoints; at least one."""
    return max(1, int(seconds * (1 - RESERVE) / seconds_per_step(model, objective, source, config, first, device)))


def seconds_per_step(
    model: nn.Module,
    objective: Objective,
    source: Source,
    config: TrainingConfig,
    first: int = 0,
    device: str | None = None,
) -> float:
    """The median time of a few real steps from number `first` on; the model and torch's generators stay as they are.

    `device` is the one that the trainer will be given.
    """
    steps = first + TRIAL_STEPS
    config = replace(config, steps=max(steps, config.steps))
    with (
        joined(config.timeout_minutes, device) as world,
        Prefetch(source, world, steps) as prefetch,
        _same_chance(world),
    ):
        while True:
            try:
                return float(world.share(_measured(model, objective, prefetch, config, world, first)))
            except OutOfMemory:
                config = replace(config, accumulate=2 * config.accumulate)


def _same_chance(world: World) -> AbstractContextManager[None]:
    """Torch's generators, that of the CPU and that of a GPU, as they were."""
    return torch.random.fork_rng(devices=[world.device] if world.device.startswith("cuda") else [])


def _measured(
    model: nn.Module, objective: Objective, prefetch: Prefetch, config: TrainingConfig, world: World, first: int
) -> float:
    trial = copy.deepcopy(model).to(world.device).train()
    stepper = stepper_for(trial, objective, Optimiser(trial, config), config, world, Clock(), prefetch.fill)
    prefetch.start(first, config.accumulate)
    began = time.perf_counter()
    for index in range(WARM_UP):
        began = time.perf_counter()
        stepper.take(first + index, prefetch.take())
    fitting = int(ENOUGH / (time.perf_counter() - began))
    measured = int(world.share(min(max(fitting, FEWEST), MOST)))  # all processes take as many steps
    times = [time.perf_counter()]
    for index in range(measured):
        stepper.take(first + WARM_UP + index, prefetch.take())
        times.append(time.perf_counter())
    # Not the mean: whatever else the machine does in these seconds would shorten the whole run.
    return statistics.median(after - before for before, after in pairwise(times))
