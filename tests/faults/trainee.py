"""A small program that trains, for tests that kill, starve and mislead it: `python trainee.py RUN [options]`.

It prints each event as a line of JSON, exits as `heedful` would, and leaves a run folder behind.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from heedful.errors import HeedfulError
from heedful.training.events import Event, Progress
from heedful.training.process import prepare_process
from heedful.training.signals import StopSignals
from heedful.training.trainer import Hooks, Trainer
from heedful.training.training_config import TrainingConfig

FEATURES = 16


@dataclasses.dataclass(frozen=True)
class Rows:
    """Some rows of a batch. Only the `asked` cells count for "fit", so that rows have different denominators."""

    x: Tensor  # (rows, FEATURES)
    asked: Tensor  # (rows, FEATURES), True where "fit" is computed
    positive: Tensor  # (rows,)

    @property
    def counts(self) -> Mapping[str, int]:
        return {"fit": int(self.asked.sum()), "sign": len(self.x)}

    @property
    def tokens(self) -> int:
        return self.x.numel()

    @property
    def padding(self) -> int:
        return 0

    def to(self, device: str) -> Rows:
        return Rows(self.x.to(device), self.asked.to(device), self.positive.to(device))


class RandomRows:
    """A source: step `number` is a batch from a generator seeded with it, cut evenly over ranks and micro-batches."""

    def __init__(self, batch: int = 12, seed: int = 0) -> None:
        self.batch, self.seed = batch, seed

    def step(self, number: int, rank: int, world: int, accumulate: int) -> Sequence[Rows]:
        rng = np.random.default_rng([self.seed, number])
        x = torch.from_numpy(rng.normal(size=(self.batch, FEATURES)).astype(np.float32))
        share = torch.from_numpy(rng.uniform(0.05, 0.9, size=(self.batch, 1)))
        asked = torch.from_numpy(rng.uniform(size=x.shape)) < share
        own = np.array_split(np.arange(self.batch), world)[rank]
        parts = (part for part in np.array_split(own, accumulate) if len(part))
        return [Rows(x[part], asked[part], (x[part].sum(1) > 0).float()) for part in parts]


class Net(nn.Module):
    """Two heads on one hidden layer, with dropout, a norm and a running statistic."""

    def __init__(self, width: int, dropout: float, seed: int = 0, layers: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.body = nn.Sequential(nn.Linear(FEATURES, width), nn.LayerNorm(width), nn.GELU(), nn.Dropout(dropout))
        self.fit = nn.Linear(width, FEATURES)
        self.sign = nn.Linear(width, 1)
        self.register_buffer("seen", torch.zeros(()))
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))


def objective(model: nn.Module, micro_batch: Rows) -> dict[str, Tensor]:
    """Squared error at the cells asked for, and the cross-entropy of the rows' sign."""
    assert isinstance(model, Net)
    hidden = model.body(micro_batch.x)
    for layer in model.layers:
        hidden = hidden + torch.tanh(layer(hidden))
    wrong = (model.fit(hidden) - micro_batch.x.square())[micro_batch.asked]
    sign = nn.functional.binary_cross_entropy_with_logits(
        model.sign(hidden)[:, 0], micro_batch.positive, reduction="sum"
    )
    return {"fit": wrong.square().sum(), "sign": sign}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("run", type=Path)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--checkpoint-every", type=int, default=10)
    parser.add_argument("--keep", type=int, default=2)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--batch", type=int, default=12)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--layers", type=int, default=0)
    parser.add_argument("--shard", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seed-of-rank", type=int, nargs=2, help="a rank and the seed that it has instead")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds to sleep in each step")
    parser.add_argument("--nan", type=int, nargs=2, default=(0, 0), help="first and last step whose loss is NaN")
    parser.add_argument("--memory", type=int, help="bytes of address space beyond those in use at the start")
    parser.add_argument("--group", type=Path, help="the memory cgroup to live in")
    parser.add_argument(
        "--take", type=int, nargs=2, default=(0, 0), help="a step, and the bytes that it takes for good"
    )
    parser.add_argument("--file-size", type=int, help="largest file that may be written")
    parser.add_argument("--die", type=int, nargs=2, help="rank and step at which it kills itself, the first time")
    return parser.parse_args()


class Fate:
    """An objective in which the faults asked for happen."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.step = 0
        self.taken: list[Tensor] = []

    def __call__(self, model: nn.Module, micro_batch: Rows) -> dict[str, Tensor]:
        time.sleep(self.options.pause)
        first, last = self.options.nan
        step, size = self.options.take
        if size and self.step + 1 == step:
            self.taken.append(torch.ones(size, dtype=torch.uint8))
        losses = objective(model, micro_batch)
        if first <= self.step + 1 <= last:
            losses["fit"] = losses["fit"] * float("nan")
        return losses

    def tell(self, event: Event) -> None:
        print(json.dumps({"event": type(event).__name__, **dataclasses.asdict(event)}), flush=True)
        if isinstance(event, Progress):
            self.step = event.step


class Mortal(RandomRows):
    """A source that kills its own process at a given step, unless torchrun has restarted it."""

    def __init__(self, batch: int, die: Sequence[int] | None) -> None:
        super().__init__(batch)
        self.die = die

    def step(self, number: int, rank: int, world: int, accumulate: int) -> Sequence[Rows]:
        if self.die == [rank, number] and os.environ.get("TORCHELASTIC_RESTART_COUNT") == "0":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().step(number, rank, world, accumulate)


def main() -> int:
    prepare_process()
    torch.set_num_threads(1)
    options = arguments()
    rank, seed = options.seed_of_rank or (-1, 0)
    options.seed = seed if os.environ.get("RANK") == str(rank) else options.seed
    if options.group:
        (options.group / "cgroup.procs").write_text(str(os.getpid()))
    config = TrainingConfig(
        steps=options.steps,
        learning_rate=1e-2,
        checkpoint_every=options.checkpoint_every,
        keep_last=options.keep,
        accumulate=options.accumulate,
        clip=options.clip,
        log_every=5,
        non_finite_limit=3,
        timeout_minutes=1,
        shard=options.shard,
        seed=options.seed,
    )
    fate = Fate(options)
    model = Net(options.width, options.dropout, layers=options.layers)
    trainer = Trainer(model, fate, Mortal(options.batch, options.die), config, options.run, Hooks(on_event=fate.tell))
    if options.file_size:
        resource.setrlimit(resource.RLIMIT_FSIZE, (options.file_size, resource.RLIM_INFINITY))
    if options.memory:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + options.memory
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        outcome = trainer.run(options.resume, StopSignals())
    except HeedfulError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(outcome, file=sys.stderr)
    return outcome.exit_code


if __name__ == "__main__":
    sys.exit(main())
