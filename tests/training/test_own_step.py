"""An objective that moves the weights itself is trained, kept and gone on with like any other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from heedful.errors import HeedfulError
from heedful.training.distributed import World
from heedful.training.optimiser import Optimiser
from heedful.training.own_step import OwnStepper, stepper_for
from heedful.training.timing import Clock
from heedful.training.trainer import Trainer
from heedful.training.training_config import TrainingConfig


@dataclass(frozen=True)
class Numbers:
    values: Tensor
    padding: int = 0

    @property
    def counts(self) -> dict[str, int]:
        return {"distance": len(self.values)}

    @property
    def tokens(self) -> int:
        return len(self.values)

    def to(self, device: str) -> Numbers:
        return self


class Towards:
    """Moves a weight towards each number by a share, one after the other."""

    def __call__(self, model: nn.Module, batch: Numbers) -> dict[str, Tensor]:
        return {"distance": (model.get_parameter("weight") - batch.values).abs().sum()}

    def update(self, model: nn.Module, batch: Numbers, rate: float) -> dict[str, tuple[float, float]]:
        weight = model.get_parameter("weight").data
        total = 0.0
        for value in batch.values:
            total += float((weight - value).abs())
            weight += rate * (value - weight)
        return {"distance": (total, len(batch.values))}


class Stream:
    def step(self, number: int, rank: int, world: int, accumulate: int) -> list[Numbers]:
        return [Numbers(torch.arange(4.0) + number)]


def one_weight() -> nn.Module:
    model = nn.Module()
    model.weight = nn.Parameter(torch.zeros(()), requires_grad=False)
    return model


CONFIG = TrainingConfig(steps=6, learning_rate=0.5, warmup=0.0, schedule="constant", checkpoint_every=2, log_every=1)


def trained(folder: Path, model: nn.Module, resume: bool = False) -> Trainer:
    trainer = Trainer(model, Towards(), Stream(), CONFIG, folder)
    assert trainer.run(resume).finished
    return trainer


def test_it_moves_the_weights_and_leaves_a_journal(tmp_path: Path) -> None:
    model, expected = one_weight(), 0.0
    trained(tmp_path / "run", model)
    for number in range(6):
        for value in range(4):
            expected += 0.5 * (value + number - expected)
    assert float(model.weight) == pytest.approx(expected)
    assert (tmp_path / "run" / "metrics.jsonl").read_text().count("distance") == 6


def test_it_is_resumed_exactly(tmp_path: Path) -> None:
    model, again = one_weight(), one_weight()
    trained(tmp_path / "run", model)
    (tmp_path / "run" / "checkpoints" / "step-000006" / "manifest.json").write_text("damaged")
    trained(tmp_path / "run", again, resume=True)
    assert torch.equal(model.weight, again.weight)


class Pair(World):
    """Two processes, the other of which has come to 3."""

    def sum(self, numbers: Sequence[float]) -> list[float]:
        return [2 * number for number in numbers]

    def sum_tensors(self, tensors: Sequence[Tensor]) -> None:
        for tensor in tensors:
            tensor += 3.0


def test_several_processes_go_on_from_the_mean() -> None:
    model = one_weight()
    stepper = stepper_for(model, Towards(), Optimiser(model, CONFIG), CONFIG, Pair(size=2), Clock(), lambda: None)
    assert isinstance(stepper, OwnStepper)
    taken = stepper.take(0, [Numbers(torch.tensor([2.0]))])
    assert float(model.weight) == (1.0 + 3.0) / 2
    assert taken.losses == {"distance": 2.0} and taken.totals.tokens == 2


def test_weights_that_are_no_longer_finite_end_the_run(tmp_path: Path) -> None:
    model = one_weight()
    model.weight.data.fill_(torch.nan)
    with pytest.raises(HeedfulError, match="not finite 5 steps in a row"):
        trained(tmp_path / "run", model)
