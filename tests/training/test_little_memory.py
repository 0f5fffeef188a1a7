"""Memory runs out somewhere in training: the batch is done in smaller parts, or the size is told; nothing is lost."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from heedful.errors import HeedfulError
from heedful.training.events import Note
from heedful.training.memory import Needs
from heedful.training.run_folder import RunFolder
from heedful.training.trainer import Hooks, Trainer
from heedful.training.training_config import TrainingConfig

CONFIG = TrainingConfig(steps=10, learning_rate=1e-2, checkpoint_every=2, keep_last=2, log_every=1, eval_every=4)
REFUSAL = "DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes."


@contextmanager
def failing(fails: Callable[[int, Tensor], bool], backward: bool) -> Iterator[None]:
    """The layer norm finds no memory where `fails` says so, on its way forward or back."""
    original, calls = torch.nn.functional.layer_norm, itertools.count(1)

    def refuse(gradient: Tensor) -> None:
        raise RuntimeError(REFUSAL)

    def layer_norm(x: Tensor, *rest: Any, **options: Any) -> Tensor:
        due = fails(next(calls), x)
        if due and not (backward and x.requires_grad):
            raise RuntimeError(REFUSAL)
        y = original(x, *rest, **options)
        if due:
            y.register_hook(refuse)
        return y

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.nn.functional, "layer_norm", layer_norm)
        yield


def run_of(trainee: ModuleType, folder: Path, told: list[Any] | None = None) -> Trainer:
    model = trainee.Net(16, 0.0)  # without dropout, whose draws depend on how a batch is cut
    hooks = Hooks(
        evaluate=lambda net: {"size": float(net.fit.weight.norm())}, on_event=(told if told is not None else []).append
    )
    return Trainer(model, trainee.objective, trainee.RandomRows(), CONFIG, folder, hooks)


def weights(run: Trainer) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in run.model.state_dict().items()}


@pytest.mark.parametrize(("call", "backward"), [(call, back) for call in range(1, 11) for back in (False, True)])
def test_a_batch_that_does_not_fit_once_is_done_in_halves(
    trainee: ModuleType, tmp_path: Path, call: int, backward: bool
) -> None:
    peace, told = run_of(trainee, tmp_path / "peace"), list[Any]()
    peace.run()
    run = run_of(trainee, tmp_path / "run", told)
    with failing(lambda number, x: number == call, backward):
        assert run.run().step == CONFIG.steps
    expected = weights(peace)
    for name, weight in weights(run).items():
        torch.testing.assert_close(weight, expected[name], atol=1e-5, rtol=1e-4)
    said = " ".join(event.text for event in told if isinstance(event, Note))
    assert "half the size" in said or call == 1  # the first call is the look at how much will be needed


def test_an_example_that_never_fits_is_told_by_its_size_and_the_run_goes_on_where_there_is_room(
    trainee: ModuleType, tmp_path: Path
) -> None:
    peace, run = run_of(trainee, tmp_path / "peace"), run_of(trainee, tmp_path / "run")
    peace.run()
    with failing(lambda number, x: number > 6, True), pytest.raises(HeedfulError) as caught:
        run.run()
    assert "a single example of 16 tokens" in str(caught.value) and "8 tokens" in str(caught.value)
    newest = RunFolder(tmp_path / "run").path / "checkpoints"
    assert [step.name for step in sorted(newest.glob("step-*"))] == ["step-000002", "step-000004"]
    again = run_of(trainee, tmp_path / "run")
    again.run(resume=True)
    for name, weight in weights(again).items():
        torch.testing.assert_close(weight, weights(peace)[name], atol=1e-5, rtol=1e-4)


def test_what_is_needed_stands_beside_what_is_free_with_a_size_to_try() -> None:
    needs = Needs(parameters=10, gradients=10, moments=20, activations=1000)
    assert "too little" not in needs.beside(2000) + needs.beside(None)
    assert "try 4 times the `accumulate`" in needs.beside(260)
    assert "try a smaller model" in needs.beside(5)
