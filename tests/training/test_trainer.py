"""Whole runs of a small network, in this process."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from heedful.errors import HeedfulError
from heedful.training.budget import steps_for
from heedful.training.events import Evaluated, Event, Note, Progress
from heedful.training.optimiser import Optimiser
from heedful.training.signals import StopSignals
from heedful.training.trainer import Hooks, Trainer
from heedful.training.training_config import TrainingConfig

CONFIG = TrainingConfig(steps=30, learning_rate=1e-2, accumulate=2, log_every=4, checkpoint_every=7)


@pytest.fixture
def trainer(trainee: ModuleType, tmp_path: Path) -> Callable[..., Trainer]:
    """Makes a trainer of a fresh network with dropout, in the run folder of a name."""

    def make(name: str = "run", config: TrainingConfig = CONFIG, **hooks: Any) -> Trainer:
        return Trainer(
            trainee.Net(16, 0.2), trainee.objective, trainee.RandomRows(), config, tmp_path / name, Hooks(**hooks)
        )

    return make


def sha256(trainer: Trainer) -> str:
    digest = hashlib.sha256()
    for tensor in trainer.model.state_dict().values():
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()


def lines(trainer: Trainer) -> list[dict[str, Any]]:
    return [json.loads(line) for line in trainer.folder.metrics.read_text().splitlines()]


def signal_at(*steps: int) -> Callable[[Event], None]:
    def on_event(event: Event) -> None:
        if isinstance(event, Progress) and event.step in steps:
            os.kill(os.getpid(), signal.SIGINT)

    return on_event


def test_a_run_that_was_stopped_twice_is_bit_identical(trainer: Callable[..., Trainer]) -> None:
    peace = trainer("peace")
    assert peace.run().finished
    first, second, third = trainer(on_event=signal_at(5)), trainer(on_event=signal_at(17)), trainer()
    stopped = first.run(signals=StopSignals())
    assert (stopped.step, stopped.signal, stopped.exit_code) == (5, signal.SIGINT, 130)
    assert "it can be resumed" in str(stopped)
    assert second.run(resume=True, signals=StopSignals()).step == 17
    assert third.run(resume=True).step == 30
    assert sha256(third) == sha256(peace) != sha256(second)
    timeless = [[(line["step"], line["losses"], line["gradient_norm"]) for line in lines(t)] for t in (peace, third)]
    assert timeless[0] == timeless[1]
    assert [step for step, *_ in timeless[0]] == [4, 8, 12, 16, 20, 24, 28, 30]


def test_ctrl_c_without_signal_handlers_keeps_the_steps_that_are_done(trainer: Callable[..., Trainer]) -> None:
    def interrupt(event: Event) -> None:
        if isinstance(event, Progress) and event.step == 9:
            raise KeyboardInterrupt

    peace, first, second = trainer("peace"), trainer(on_event=interrupt), trainer()
    peace.run()
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        first.run()
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    assert first.folder.checkpoints.steps()[-1] == 9
    assert second.run(resume=True).finished
    assert sha256(second) == sha256(peace)


@pytest.mark.parametrize("call", ["gradients", "update"])
def test_ctrl_c_within_a_step_never_keeps_half_a_step(
    trainer: Callable[..., Trainer], monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """In the midst of the update no checkpoint can be written; before it, the step is as good as not begun."""
    peace, first, second = trainer("peace"), trainer(), trainer()
    peace.run()
    whole, calls = Optimiser.step if call == "update" else Optimiser.rate, []

    def interrupted(self: Optimiser, number: Any) -> Any:
        calls.append(number)
        if len(calls) == 9:
            if call == "update":
                next(iter(self.parameters.values())).data.add_(1.0)  # moved by half
            raise KeyboardInterrupt
        return whole(self, number)

    with monkeypatch.context() as patch:
        patch.setattr(Optimiser, "step" if call == "update" else "rate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            first.run()
    assert first.folder.checkpoints.steps()[-1] == (7 if call == "update" else 8)
    second.run(resume=True)
    assert sha256(second) == sha256(peace)


def test_losses_fall(trainer: Callable[..., Trainer]) -> None:
    run = trainer(config=replace(CONFIG, steps=200, checkpoint_every=0))
    run.run()
    told = lines(run)
    assert told[-1]["losses"]["sign"] < 0.6 * told[0]["losses"]["sign"]
    # Of the squares of normal numbers, a guess of 0 leaves 3 and the best constant guess 2.
    assert told[0]["losses"]["fit"] > 2.5 > told[-1]["losses"]["fit"]


def test_a_folder_with_a_run_wants_resume_and_a_finished_run_stays(trainer: Callable[..., Trainer]) -> None:
    done = trainer()
    done.run(resume=True)
    with pytest.raises(HeedfulError, match="already"):
        trainer().run()
    again = trainer()
    assert again.run(resume=True).step == 30
    assert sha256(again) == sha256(done)


def test_the_newest_checkpoint_damaged_the_one_before_is_used_and_named(trainer: Callable[..., Trainer]) -> None:
    peace = trainer("peace")
    peace.run()
    run = trainer(on_event=signal_at(16))
    run.run(signals=StopSignals())
    (run.folder.checkpoints.path(16) / "state.json").write_text("{}")
    told: list[Event] = []
    again = trainer(on_event=told.append)
    again.run(resume=True)
    notes = [event.text for event in told if isinstance(event, Note)]
    assert any("step-000016 is damaged" in text for text in notes) and "resumed from step-000014" in notes
    assert sha256(again) == sha256(peace)
    assert (again.folder.checkpoints.folder / "damaged-step-000016").is_dir()


def test_when_every_checkpoint_is_damaged_nothing_is_started_over(trainer: Callable[..., Trainer]) -> None:
    run = trainer()
    run.run()
    for step in run.folder.checkpoints.steps():
        (run.folder.checkpoints.path(step) / "manifest.json").unlink()
    with pytest.raises(HeedfulError, match="every checkpoint is damaged: step-000030, step-000028"):
        trainer().run(resume=True)


def test_evaluation_keeps_the_best_and_ends_training_early(trainer: Callable[..., Trainer]) -> None:
    values = iter([3.0, 1.0, 2.0, 1.5, 9.0, 9.0])
    states: list[Any] = []

    def evaluate(model: torch.nn.Module) -> dict[str, float]:
        assert not model.training and not torch.is_grad_enabled()
        states.append(model.state_dict()["fit.weight"].clone())
        return {"loss": next(values)}

    told: list[Event] = []
    config = replace(CONFIG, eval_every=5, best="loss", patience=3, restore_best=True, keep_last=1, checkpoint_every=3)
    saved: list[Path] = []
    run = trainer(config=config, evaluate=evaluate, on_event=told.append, save_model=saved.append)
    outcome = run.run()
    assert (outcome.step, outcome.stopped_early, outcome.best_value) == (25, True, 1.0)
    assert outcome.best == run.folder.checkpoints.path(10) and run.folder.checkpoints.steps() == [10, 25]
    assert torch.equal(run.model.state_dict()["fit.weight"], states[1])
    assert [event.best for event in told if isinstance(event, Evaluated)] == [True, True, False, False, False]
    assert saved == [run.folder.model]
    again = trainer(config=config, evaluate=evaluate)
    assert again.run(resume=True).stopped_early and sha256(again) == sha256(run)


def test_a_signal_before_an_evaluation_only_puts_it_off(trainer: Callable[..., Trainer]) -> None:
    def evaluate(model: torch.nn.Module) -> dict[str, float]:
        return {"size": float(model.state_dict()["fit.weight"].norm())}

    config = replace(CONFIG, eval_every=10)
    peace, first, second = (
        trainer("peace", config, evaluate=evaluate),
        trainer("run", config, evaluate=evaluate, on_event=signal_at(10)),
        trainer("run", config, evaluate=evaluate),
    )
    peace.run(), first.run(signals=StopSignals()), second.run(resume=True)
    told = [[(x["step"], x["evaluation"]) for x in lines(t) if "evaluation" in x] for t in (peace, second)]
    assert told[0] == told[1] and [step for step, _ in told[0]] == [10, 20, 30]


def test_a_signal_breaks_an_evaluation_off_and_the_resumed_run_does_only_what_is_missing(
    trainer: Callable[..., Trainer], capfd: pytest.CaptureFixture[str]
) -> None:
    calls: list[str] = []

    def evaluate(model: torch.nn.Module) -> dict[str, float]:
        return {"size": float(model.state_dict()["fit.weight"].norm())}

    def interrupted(model: torch.nn.Module) -> dict[str, float]:
        calls.append("interrupted")
        os.kill(os.getpid(), signal.SIGTERM)
        calls.append("went on")
        return evaluate(model)

    def taken(event: Event) -> None:
        if isinstance(event, Progress):
            calls.append(f"step {event.step}")

    config = replace(CONFIG, checkpoint_every=0, best="size")
    saved: list[Path] = []
    peace = trainer("peace", config, evaluate=evaluate)
    peace.run()
    stopped = trainer("run", config, evaluate=interrupted, save_model=saved.append).run(signals=StopSignals())
    assert (stopped.step, stopped.exit_code, calls, saved) == (30, 143, ["interrupted"], [])
    assert stopped.checkpoint is not None and stopped.checkpoint.is_dir()
    told = capfd.readouterr().err
    assert "broken off" in told and "written" not in told
    resumed = trainer("run", config, evaluate=evaluate, on_event=taken, save_model=saved.append)
    assert resumed.run(resume=True).finished and saved == [resumed.folder.model]
    assert calls == ["interrupted"] and sha256(resumed) == sha256(peace)
    evaluations = [[line["evaluation"] for line in lines(t) if "evaluation" in line] for t in (peace, resumed)]
    assert evaluations[0] == evaluations[1] and len(evaluations[0]) == 1
    again = trainer("run", config, evaluate=interrupted)
    outcome = again.run(resume=True, signals=StopSignals())  # neither evaluated again nor forgotten
    assert outcome.best_value == evaluations[0][0]["size"] and lines(again) == lines(resumed)


def test_the_last_step_is_on_the_disk_before_its_evaluation(trainer: Callable[..., Trainer]) -> None:
    run = trainer("run", replace(CONFIG, checkpoint_every=0), evaluate=lambda model: there.append(steps()) or {})
    there: list[list[int]] = []
    steps = run.folder.checkpoints.steps
    run.run()
    assert there == [[30]]


def test_a_signal_while_the_model_is_saved_leaves_a_run_to_resume(trainer: Callable[..., Trainer]) -> None:
    def save(path: Path) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("went on")

    outcome = trainer(save_model=save).run(signals=StopSignals())
    assert (outcome.finished, outcome.step, outcome.exit_code) == (False, 30, 130)
    saved: list[Path] = []
    assert trainer(save_model=saved.append).run(resume=True).finished and len(saved) == 1


def test_examples_are_journaled_and_told_and_change_nothing(trainer: Callable[..., Trainer]) -> None:
    def evaluate(model: torch.nn.Module) -> dict[str, float]:
        return {"size": float(model.state_dict()["fit.weight"].norm())}

    def examples(model: torch.nn.Module) -> list[dict[str, Any]]:
        assert not model.training and not torch.is_grad_enabled()
        torch.rand(7)  # whoever picks examples by chance takes none of it away from dropout
        size = float(model.state_dict()["fit.weight"].norm())
        return [{"text": "水 [___]", "guesses": [["a", 0.5], ["b", 0.25]]}, {"text": "two", "size": size}]

    told: list[Event] = []

    def tell(event: Event) -> None:
        told.append(event)
        if isinstance(event, Progress) and event.step == 13:
            os.kill(os.getpid(), signal.SIGINT)

    config = replace(CONFIG, eval_every=10)
    plain = trainer("plain", config, evaluate=evaluate)
    first = trainer("run", config, evaluate=evaluate, examples=examples, on_event=tell)
    second = trainer("run", config, evaluate=evaluate, examples=examples, on_event=told.append)
    plain.run(), first.run(signals=StopSignals()), second.run(resume=True)
    assert sha256(second) == sha256(plain)
    journaled = [(line["step"], line["evaluation"], line["examples"]) for line in lines(second) if "examples" in line]
    assert [step for step, *_ in journaled] == [10, 20, 30]
    assert [(e.step, e.metrics, e.examples) for e in told if isinstance(e, Evaluated)] == journaled
    assert [some[1]["size"] for *_, some in journaled] == [numbers["size"] for _, numbers, _ in journaled]
    assert not any("examples" in line for line in lines(plain))


def test_an_unknown_metric_is_named(trainer: Callable[..., Trainer]) -> None:
    config = replace(CONFIG, best="accuracy", eval_every=2)
    with pytest.raises(HeedfulError, match="accuracy"):
        trainer(config=config, evaluate=lambda model: {"loss": 1.0}).run()


def test_nan_is_skipped_and_counted_and_too_many_end_the_run(trainee: ModuleType, tmp_path: Path) -> None:
    def run(last: int) -> Trainer:
        calls = iter(range(1, 1000))

        def objective(model: torch.nn.Module, micro_batch: Any) -> Any:
            step = next(calls) - 1  # the first call is the look at memory
            losses = trainee.objective(model, micro_batch)
            return {name: loss * float("nan") if 10 <= step <= last else loss for name, loss in losses.items()}

        config = replace(CONFIG, accumulate=1, non_finite_limit=3)
        return Trainer(trainee.Net(16, 0.2), objective, trainee.RandomRows(), config, tmp_path / str(last))

    few = run(11)
    outcome = few.run()
    assert outcome.skipped == 2 and lines(few)[-1]["skipped"] == 2
    assert [line["step"] for line in lines(few) if "note" in line] == [10, 11]
    many = run(1000)
    with pytest.raises(HeedfulError, match="3 steps in a row, up to step 12; the last good checkpoint is step-000007"):
        many.run()
    assert all(torch.isfinite(tensor).all() for tensor in many.model.state_dict().values())


def test_timing_adds_up_to_the_time_that_passed(trainer: Callable[..., Trainer]) -> None:
    began = time.perf_counter()
    run = trainer(evaluate=lambda model: time.sleep(0.02) or {"x": 1.0}, config=replace(CONFIG, eval_every=10))
    run.run()
    passed = time.perf_counter() - began
    told = json.loads(run.folder.timing.read_text())
    assert sum(told["parts"].values()) == pytest.approx(told["wall"], rel=0.02)
    assert told["wall"] <= passed
    assert told["parts"]["evaluation"] >= 0.06
    assert all(told["parts"][part] > 0 for part in ("wait", "forward", "backward", "optimiser", "checkpoint"))


def test_measuring_for_a_budget_changes_nothing(trainer: Callable[..., Trainer]) -> None:
    peace = trainer("peace")
    peace.run()
    run = trainer()
    before = sha256(run)
    assert steps_for(0.0, run.model, run.objective, run.source, CONFIG) == 1
    few = steps_for(10.0, run.model, run.objective, run.source, CONFIG)
    assert few > 1
    assert sha256(run) == before
    run.run()
    assert sha256(run) == sha256(peace)


def test_progress_tells_what_a_display_needs(trainer: Callable[..., Trainer]) -> None:
    told: list[Event] = []
    trainer(on_event=told.append).run()
    steps = [event for event in told if isinstance(event, Progress)]
    assert [event.step for event in steps] == list(range(1, 31))
    assert steps[-1].seconds_left == 0 and all(event.tokens_per_second > 0 for event in steps)
    assert set(steps[0].losses) == {"fit", "sign"}
    assert isinstance(told[0], Note) and "memory: about" in told[0].text
