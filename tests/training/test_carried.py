"""A state that travels from step to step: kept in checkpoints, begun anew where a step fails, shared by processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from heedful.nn.carried import Carried
from heedful.tasks.pretraining_objective import Remembering
from heedful.training.trainer import Trainer
from heedful.training.training_config import TrainingConfig

LANES, WIDTH = 6, 5
CONFIG = TrainingConfig(steps=8, learning_rate=1e-2, checkpoint_every=1, keep_last=9)


@dataclass(frozen=True)
class Numbers:
    """A number for each of some lanes."""

    values: Tensor  # (b,)
    lanes: Tensor  # (b,)
    fresh: Tensor  # (b,)

    @property
    def counts(self) -> Mapping[str, int]:
        return {"next": len(self.values)}

    @property
    def tokens(self) -> int:
        return len(self.values)

    padding = 0

    def to(self, device: str) -> Numbers:
        return Numbers(self.values.to(device), self.lanes.to(device), self.fresh.to(device))


class Stream:
    """Numbers that depend on the step and the lane; all lanes begin at step 0."""

    def step(self, number: int, rank: int = 0, world: int = 1, accumulate: int = 1) -> list[Numbers]:
        parts = (torch.arange(LANES)[rank * accumulate + i :: world * accumulate] for i in range(accumulate))
        return [
            Numbers(torch.sin(3.0 * number + lanes), lanes, torch.full((len(lanes),), number == 0)) for lanes in parts
        ]


class Cell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.cell, self.out = nn.GRUCell(1, WIDTH), nn.Linear(WIDTH, 1)


def losses(model: Any, some: Numbers, before: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    state = model.cell(some.values[:, None], before["state"])
    return {"next": (model.out(state)[:, 0] - torch.sin(some.values)).square().sum()}, {"state": state}


def remembering() -> Remembering:
    return Remembering(losses, {"state": torch.zeros(LANES, WIDTH)})


def trained(folder: Path, resume: bool = False, accumulate: int = 1) -> tuple[Cell, Remembering]:
    model, objective = Cell(), remembering()
    config = TrainingConfig(**{**vars(CONFIG), "accumulate": accumulate})
    Trainer(model, objective, Stream(), config, folder).run(resume=resume)
    return model, objective


def same(one: nn.Module, other: nn.Module) -> bool:
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def test_a_resumed_run_goes_on_from_the_state_that_was_carried(tmp_path: Path) -> None:
    model, objective = trained(tmp_path / "run")
    for step in range(5, 9):
        (tmp_path / "run" / "checkpoints" / f"step-{step:06d}" / "manifest.json").write_text("damaged")
    again, resumed = trained(tmp_path / "run", resume=True)
    assert same(model, again)
    assert torch.equal(objective.carried.tensors["state"], resumed.carried.tensors["state"])
    assert objective.carried.tensors["state"].abs().min() > 0  # no lane was left out


def test_the_state_matters_and_the_cut_into_micro_batches_does_not(tmp_path: Path) -> None:
    whole, _ = trained(tmp_path / "whole")
    cut, _ = trained(tmp_path / "cut", accumulate=3)
    for name, parameter in whole.named_parameters():
        torch.testing.assert_close(dict(cut.named_parameters())[name], parameter, rtol=1e-4, atol=1e-6)

    def forgetful(model: nn.Module, some: Numbers) -> Mapping[str, Tensor]:
        return losses(model, some, {"state": torch.zeros(len(some.values), WIDTH)})[0]

    model = Cell()
    Trainer(model, forgetful, Stream(), CONFIG, tmp_path / "forgetful").run()
    assert not same(whole, model)


def test_a_step_that_does_not_fit_begins_again_from_the_same_state(tmp_path: Path) -> None:
    failed: list[int] = []

    def tight(model: nn.Module, some: Numbers, before: dict[str, Tensor]) -> Any:
        found = losses(model, some, before)
        if len(some.values) == LANES and before["state"].abs().max() > 0:
            failed.append(1)
            raise MemoryError
        return found

    model, objective = Cell(), Remembering(tight, {"state": torch.zeros(LANES, WIDTH)})
    outcome = Trainer(model, objective, Stream(), CONFIG, tmp_path / "tight").run()
    assert failed and outcome.accumulate == 2
    whole, _ = trained(tmp_path / "whole")
    for name, parameter in whole.named_parameters():
        torch.testing.assert_close(dict(model.named_parameters())[name], parameter, rtol=1e-4, atol=1e-6)


def test_a_step_that_is_not_finite_lets_its_lanes_begin_anew() -> None:
    carried = Carried({"state": torch.ones(4, 2)})
    carried.leave(torch.tensor([1, 3]), {"state": torch.full((2, 2), torch.nan)})
    carried.keep(finite=False)
    assert carried.tensors["state"][:, 0].tolist() == [1, 0, 1, 0]


def test_fresh_lanes_begin_at_zero_and_what_is_dropped_does_not_count() -> None:
    carried = Carried({"state": torch.arange(4.0)[:, None]})
    rows = carried.rows(torch.tensor([3, 1]), torch.tensor([False, True]))
    assert rows["state"][:, 0].tolist() == [3, 0]
    carried.leave(torch.tensor([0]), {"state": torch.tensor([[9.0]])})
    carried.drop()
    carried.keep()
    assert carried.tensors["state"][:, 0].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("turns", [1, 3])
def test_processes_give_each_other_their_lanes(turns: int) -> None:
    ranks = [Carried({"state": torch.zeros(4, 1)}) for _ in range(2)]
    for turn in range(turns):
        lanes = (
            [torch.tensor([0, 2]), torch.tensor([1, 3])] if turn % 2 else [torch.tensor([0, 1]), torch.tensor([2, 3])]
        )
        for rank, mine in zip(ranks, lanes, strict=True):
            rank.leave(mine, {"state": mine[:, None] + 10.0 * turn})
            rank.keep()
        share(ranks)
        for rank in ranks:
            assert rank.tensors["state"][:, 0].tolist() == [lane + 10.0 * turn for lane in range(4)]
    share(ranks)  # nothing has moved since
    assert ranks[0].tensors["state"][:, 0].tolist() == [lane + 10.0 * (turns - 1) for lane in range(4)]


def share(ranks: Sequence[Carried]) -> None:
    """What an all-reduce does: each rank offers its tensors, and all get the sums."""
    offered: list[Sequence[Tensor]] = []
    for rank in ranks:
        rank.share(offered.append)
    for parts in zip(*offered, strict=True):
        total = torch.stack(list(parts)).sum(0)
        for part in parts:
            part.copy_(total)
