"""Places to write that are not there, not writable, taken, or removed under a running process; clocks that jump."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from heedful.errors import HeedfulError
from heedful.training.events import Event, Note, Outcome, Progress
from heedful.training.run_folder import RunFolder
from heedful.training.trainer import Hooks, Trainer
from heedful.training.training_config import TrainingConfig


@pytest.fixture(scope="module")
def trainee() -> ModuleType:
    """A small network, its objective and its data."""
    spec = importlib.util.spec_from_file_location("trainee", Path(__file__).parent / "trainee.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["trainee"] = module  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


def trainer(trainee: ModuleType, run: Path, on_event: object = None) -> Trainer:
    config = TrainingConfig(steps=30, checkpoint_every=10)
    hooks = Hooks(on_event=on_event)  # type: ignore[arg-type]
    return Trainer(trainee.Net(16, 0.0), trainee.objective, trainee.RandomRows(), config, run, hooks)


def fingerprint(run: Path) -> str:
    return hashlib.sha256((run / "checkpoints/step-000030/weights/model.safetensors").read_bytes()).hexdigest()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs Linux: /proc takes no files, whoever asks")
def test_a_folder_that_cannot_be_written_is_refused_before_the_first_step(trainee: ModuleType) -> None:
    told: list[Event] = []
    with pytest.raises(HeedfulError, match=r"cannot write here(.|\n)*name another folder"):
        trainer(trainee, Path("/proc/run"), told.append).run()
    assert told == []


def test_a_run_whose_folder_is_removed_goes_on_in_a_new_one_and_says_so(trainee: ModuleType, tmp_path: Path) -> None:
    run, notes = tmp_path / "run", list[str]()
    trainer(trainee, tmp_path / "peace").run()

    def remove(event: Event) -> None:
        if isinstance(event, Progress) and event.step == 13:
            shutil.rmtree(run)
        if isinstance(event, Note):
            notes.append(event.text)

    assert trainer(trainee, run, remove).run().finished
    assert any("folder was removed" in note for note in notes)
    assert fingerprint(run) == fingerprint(tmp_path / "peace")
    assert RunFolder(run).stored_as(TrainingConfig) == TrainingConfig(steps=30, checkpoint_every=10)
    assert (run / "metrics.jsonl").read_text().count("\n") == 2  # steps 20 and 30
    assert isinstance(trainer(trainee, run).run(resume=True), Outcome)  # nothing is left to do


def test_two_runs_in_one_folder_the_second_is_refused_and_the_first_goes_on(
    trainee: ModuleType, tmp_path: Path
) -> None:
    refused: list[str] = []

    def intrude(event: Event) -> None:
        if isinstance(event, Progress) and event.step == 5:
            with pytest.raises(HeedfulError) as caught:
                trainer(trainee, tmp_path / "run").run(resume=True)
            refused.append(str(caught.value))

    trainer(trainee, tmp_path / "peace").run()
    assert trainer(trainee, tmp_path / "run", intrude).run().finished
    assert "another process" in refused[0]
    assert fingerprint(tmp_path / "run") == fingerprint(tmp_path / "peace")


def test_a_clock_that_jumps_changes_nothing(
    trainee: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer(trainee, tmp_path / "peace").run()
    real, calls = time.time, [0]

    def jumping() -> float:
        calls[0] += 1
        return real() + (-1) ** calls[0] * 1e8

    monkeypatch.setattr(time, "time", jumping)
    assert trainer(trainee, tmp_path / "run").run().finished
    assert fingerprint(tmp_path / "run") == fingerprint(tmp_path / "peace")
