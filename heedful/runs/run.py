"""The one skeleton of all runs: plan, material, model, trainer, evaluation, and what is left in the folder."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
from torch import nn

from heedful.inference.embedder import Embedder
from heedful.inference.load import load
from heedful.inference.translator import Translator
from heedful.runs.distilling.settings import DistillingSettings
from heedful.runs.finetuning.settings import FinetuningSettings
from heedful.runs.judge import Judge
from heedful.runs.pretraining.settings import PretrainingSettings
from heedful.runs.score_file import write_scores
from heedful.runs.settings import storable
from heedful.runs.tensorboard import event_files
from heedful.runs.translation.settings import TranslationSettings
from heedful.training.contract import Objective, Source
from heedful.training.distributed import own_device, restarted
from heedful.training.events import Ended, Evaluated, Event, Note, Outcome
from heedful.training.loss_remark import loss_remark
from heedful.training.optimiser import RateScale
from heedful.training.precision import resolved_precision, slow_bfloat16_warning
from heedful.training.process import denormals_as_zero
from heedful.training.run_folder import RunFolder
from heedful.training.signals import StopSignals
from heedful.training.trainer import Hooks, Trainer
from heedful.training.training_config import TrainingConfig
from heedful.views.comparison import SCORES
from heedful.views.report import REPORT, write_report

S = TypeVar("S", PretrainingSettings, FinetuningSettings, TranslationSettings, DistillingSettings)
OnEvent = Callable[[Event], None]


class StoppedBefore(Exception):
    """A signal came before training began; what was computed until then is kept."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(str(outcome))
        self.outcome = outcome


class Plan(Protocol):
    """Everything that decides what comes out of a run, worked out: a dataclass that goes into config.toml."""

    @property
    def training(self) -> TrainingConfig:
        """What the trainer is told."""


@dataclass(frozen=True)
class Ready:
    """A run that can begin: its data is read, its model built, its steps counted."""

    plan: Plan
    model: nn.Module
    objective: Objective
    source: Source
    save: Callable[[Path], None]  # write the finished model to this folder
    judge: Judge[Any] | None = None
    rate_scale: RateScale | None = None
    spent: float = 0.0  # seconds that its start took, such as those of word vectors


@dataclass(frozen=True)
class Stage:
    """Where a run takes place and who hears of it."""

    folder: RunFolder
    resume: bool = False
    on_event: OnEvent = lambda event: None
    tensorboard: bool = False  # write event files into the folder
    signals: StopSignals | None = None  # None: nobody listens to signals, Ctrl-C comes as KeyboardInterrupt

    def note(self, text: str) -> None:
        """Tell whoever listens."""
        self.tell(Note(text))

    def tell(self, event: Event) -> None:
        """Tell of an event, once, however many processes there are."""
        if first_process():
            self.on_event(event)


@dataclass(frozen=True)
class Trial:
    """One of several runs that are compared, or the mean of several seeds."""

    folder: Path
    values: Mapping[str, Any]  # what is other about it, such as its seed
    scores: Mapping[str, float]
    spread: Mapping[str, float] = field(default_factory=dict)  # standard deviations, of several seeds
    remark: str = ""


@dataclass(frozen=True, repr=False)
class Run:
    """A run that has ended, and what it has left."""

    folder: Path
    outcome: Outcome
    scores: Mapping[str, float]  # of the weights it ended with, on dev or held-out data
    trials: Sequence[Trial] = ()  # where several runs were compared: all of them, in order
    kept: Path | None = None  # and the folder of the one whose model was kept

    def __repr__(self) -> str:
        scores = "".join(f", {name} {value:.4g}" for name, value in self.scores.items())
        return f"<Run {str(self.folder)!r}: {self.outcome}{scores}>"

    @property
    def model(self) -> Path:
        """The folder of the finished model."""
        return RunFolder(self.folder).model

    @property
    def report(self) -> Path:
        """The page about the run."""
        return self.folder / REPORT

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The rows of metrics.jsonl."""
        lines = RunFolder(self.kept or self.folder).metrics.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def load(self, device: str | None = None) -> Embedder | Translator:
        """The finished model, ready to answer."""
        return load(self.folder, device)


def carry_out(prepare: Callable[[S, Stage], Ready], settings: S, stage: Stage) -> Run:
    """Train what `prepare` makes ready of the settings, from reading the data to the report."""
    stage.folder.check_resumable(stage.resume or restarted())
    stage.folder.settings = storable(settings)
    with denormals_as_zero(), _listening(stage) as stage:
        _warn_if_busy(stage)
        try:
            ready = prepare(_with_precision(settings, stage), stage)
        except StoppedBefore as stopped:
            stage.note(str(stopped))
            return Run(stage.folder.path, stopped.outcome, {})
        judge, training, folder = ready.judge, ready.plan.training, stage.folder
        hooks = Hooks(
            evaluate=judge.evaluate if judge else None,
            examples=judge.examples if judge else None,
            on_event=_watcher(stage, ready),
            save_model=ready.save,
            rate_scale=ready.rate_scale,
        )
        trainer = Trainer(ready.model, ready.objective, ready.source, training, folder, hooks, ready.plan)
        if not folder.timing.exists():
            trainer.clock.add("start", ready.spent)
        outcome = trainer.run(stage.resume, stage.signals)
    scores: Mapping[str, float] = judge.kept.scores if judge and judge.kept else {}
    if first_process():
        if scores:
            write_scores(folder.path / SCORES, scores)
        remarks = (loss_remark(folder.metrics), judge.remark(training.best) if judge else None)
        report = write_report(folder.path)
        stage.tell(Ended(outcome, trainer.clock.wall, report, folder.model, tuple(filter(None, remarks))))
    return Run(folder.path, outcome, scores)


@contextmanager
def _listening(stage: Stage) -> Iterator[Stage]:
    """The stage with all who listen to it, event files included."""
    if not (stage.tensorboard and first_process()):
        yield stage
        return
    with event_files(stage.folder.path) as files:

        def hear(event: Event) -> None:
            files.hear(event)
            stage.on_event(event)

        yield replace(stage, on_event=hear)


def first_process() -> bool:
    """Whether this process is the one that speaks, of those torchrun has started."""
    return os.environ.get("RANK", "0") == "0"


def processes() -> int:
    """How many processes torchrun has started."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def _with_precision(settings: S, stage: Stage) -> S:
    """The settings with `auto` answered: by the processor, or for a run that is resumed as it was started."""
    asked, device = settings.precision, own_device()
    stored = (stage.folder.stored() or {}).get("training", {}).get("precision")
    found = resolved_precision(asked, device, stored)
    if asked == "auto":
        stage.note(f"precision {found}")
    elif asked == "bfloat16" and (warning := slow_bfloat16_warning(device)):
        stage.note(f"warning: {warning}")
    return replace(settings, precision=found.precision)


def _watcher(stage: Stage, ready: Ready) -> OnEvent:
    """Pass every event on, and notice which evaluation is that of the weights the run ends with."""

    def watch(event: Event) -> None:
        judge = ready.judge
        if isinstance(event, Evaluated) and judge and (event.best or not ready.plan.training.restore_best):
            judge.kept = judge.last
        stage.tell(event)

    return watch


def _warn_if_busy(stage: Stage) -> None:
    """Threads of one product wait for each other, so that one busy core slows the others down to a crawl."""
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if busy > 1.5 and torch.get_num_threads() > 1:
        stage.note(f"the machine is busy (load {busy:.1f}); with OMP_NUM_THREADS=1 a small model may train faster now")
