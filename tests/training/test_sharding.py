"""A model in slices over four processes against one process that has all of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from heedful.errors import HeedfulError
from heedful.training.distributed import World
from heedful.training.sharding import sharded
from heedful.training.trainer import Trainer
from heedful.training.training_config import TrainingConfig

SLICED = ("--layers", "2", "--width", "10", "--dropout", "0", "--clip", "0.5", "--steps", "10")
CHECKPOINTS = ("--checkpoint-every", "5", "--keep", "9")


def losses(run: Path) -> dict[int, dict[str, float]]:
    """The losses by step."""
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return {line["step"]: line["losses"] for line in lines if "losses" in line}


def test_four_processes_with_slices_are_one_process_and_any_number_goes_on(
    faults: ModuleType, trainee: ModuleType, tmp_path: Path
) -> None:
    one, four, two = tmp_path / "one", tmp_path / "four", tmp_path / "two"
    config = TrainingConfig(10, 1e-2, clip=0.5, log_every=5, checkpoint_every=5, timeout_minutes=1, non_finite_limit=3)
    Trainer(trainee.Net(10, 0.0, layers=2), trainee.objective, trainee.RandomRows(), config, one, device="cpu").run()
    done = faults.train(four, *SLICED, *CHECKPOINTS, "--shard", ranks=4)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (four / "checkpoints/step-000010/weights").iterdir()) == [
        *(f"slices-0000{number}-of-00004.safetensors" for number in (1, 2, 3, 4)),
        "slices.json",
    ]
    shutil.rmtree(four / "checkpoints/step-000010")
    shutil.copytree(four, two)
    found = [losses(four)]
    for run, ranks, how in ((two, 2, ["--shard"]), (four, 1, [])):
        again = faults.train(run, *SLICED, *CHECKPOINTS, *how, "--resume", ranks=ranks)
        assert again.returncode == 0, again.stderr
        assert "resumed from step-000005" in again.stdout
        found.append(losses(run))
    for other in found:
        assert other.keys() == losses(one).keys()
        for step, expected in losses(one).items():
            assert other[step] == pytest.approx(expected, abs=1e-5)


def test_a_rank_with_other_settings_is_named(faults: ModuleType, tmp_path: Path) -> None:
    done = faults.train(tmp_path / "run", "--steps", "2", "--seed-of-rank", "1", "7", ranks=2)
    assert done.returncode != 0
    assert "rank 1 has another seed than rank 0: 7, not 0" in done.stderr
    assert not (tmp_path / "run").exists()


@dataclass(frozen=True)
class Heard(World):
    """A world in which this rank hears what others would have said."""

    size: int = 2
    others: tuple[Mapping[str, Any], ...] = ()

    def gather(self, value: Any) -> list[Any]:
        return [value, *self.others]


def test_ranks_that_differ_in_data_or_version_are_told_apart() -> None:
    facts = {"version": "heedful 1", "data": "a"}
    Heard(others=(facts,)).agree(facts)
    with pytest.raises(HeedfulError, match="rank 1 has another data than rank 0: b, not a"):
        Heard(others=({**facts, "data": "b"},)).agree(facts)
    with pytest.raises(HeedfulError, match="rank 2 has another version"):
        Heard(size=3, others=(facts, {**facts, "version": "heedful 2"})).agree(facts)


def test_the_error_of_one_rank_is_told_with_its_number() -> None:
    call: Callable[[], int] = lambda: 3  # noqa: E731
    assert Heard(others=({"value": 4},)).each(call) == [3, 4]
    with pytest.raises(HeedfulError, match="rank 1: no room") as raised:
        Heard(others=({"error": ["no room", "disk", "free some"]},)).each(call)
    assert raised.value.where == "disk"


def test_a_process_alone_has_all_slices_and_own_steps_are_refused(trainee: ModuleType) -> None:
    net = trainee.Net(4, 0.0)
    assert sharded(net, trainee.objective, World()) is None

    class Own:
        update = staticmethod(lambda model, batch, rate: {})

    with pytest.raises(HeedfulError, match="`shard` has no effect"):
        sharded(net, Own(), World())  # type: ignore[arg-type]
