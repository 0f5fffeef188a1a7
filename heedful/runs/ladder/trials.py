"""A trained model tried on a task, with all of it fine-tuned or frozen under a linear layer, from several seeds."""

from __future__ import annotations

import dataclasses
import shutil
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from heedful.inference.embedder import Embedder
from heedful.runs.finetuning.settings import FinetuningSettings
from heedful.runs.finetuning.trials import finetune_all
from heedful.runs.ladder.rungs import Rung
from heedful.runs.ladder.settings import LadderSettings
from heedful.runs.ladder.tasks import LabelledTask
from heedful.runs.run import Run, Stage
from heedful.tasks.registry import task_named
from heedful.training.run_folder import RunFolder

Way = Literal["frozen", "tuned"]
WAYS: tuple[Way, ...] = ("frozen", "tuned")
# Over states that are computed once an epoch costs next to nothing.
FROZEN_EPOCHS, FROZEN_RATE = 20.0, 3e-3
MOST_LAYERS = 4  # whose states are joined
DROPOUT = 0.1
AT_THE_END = 10**9  # evaluations so many steps apart: no weights are chosen by dev


class Stopped(BaseException):
    """A signal came; what was done until then is kept."""

    def __init__(self, signal: int) -> None:
        super().__init__(signal)
        self.signal = signal


def finished(run: Run) -> Run:
    """The run, if it was not stopped."""
    if run.outcome.signal is not None:
        raise Stopped(run.outcome.signal)
    return run


def tried(
    rung: Rung, model: Embedder, task: LabelledTask, way: Way, settings: LadderSettings, length: int, stage: Stage
) -> dict[str, Any]:
    """The score that decides, of each seed, its mean and its spread; the runs themselves are not kept."""
    folder = stage.folder.path / "tries" / f"{task.name}-{way}"
    told = settings_of_try(rung, task, way, settings, folder, length)
    if way == "frozen":
        layers = range(-1, -1 - min(MOST_LAYERS, max(1, model.encoder.layer_count)), -1)
        told = replace(told, features=tuple(layers))
    run = finished(finetune_all(told, replace(stage, folder=RunFolder(folder))))
    scores = [one.scores for one in run.trials] or [run.scores]
    decides = _decides(run.kept or run.folder)
    values = [score[decides] for score in scores]
    spread = statistics.stdev(values) if len(values) > 1 else None
    shutil.rmtree(folder, ignore_errors=True)
    return {
        "score": decides,
        "mean": statistics.fmean(values),
        "spread": spread,
        "values": values,
        "learning_rate": told.learning_rate,
        "epochs": told.epochs,
    }


def settings_of_try(
    rung: Rung, task: LabelledTask, way: Way, settings: LadderSettings, folder: Path, length: int
) -> FinetuningSettings:
    """What a try is told: the same for all models, and for texts the mean over their tokens."""
    fields = {field.name for field in dataclasses.fields(task_named(task.kind))}
    frozen = way == "frozen"
    return FinetuningSettings(
        task.kind,
        model=Path(settings.output) / rung.name,
        train=task.train,
        dev=task.dev,
        output=folder,
        limit=settings.rows,
        seeds=settings.seeds,
        max_length=length * rung.tokens_a_piece,
        keep="last",
        eval_every=AT_THE_END,
        checkpoint_every=0,
        pooling="mean" if "pooling" in fields else None,
        epochs=FROZEN_EPOCHS if frozen else settings.epochs,
        # Word vectors have no layers that a high rate could upset, and move nowhere with a low one.
        learning_rate=FROZEN_RATE if frozen or rung.reads_words else settings.finetune_rate,
        dropout=None if frozen else DROPOUT,
    )


def _decides(folder: Path) -> str:
    stored = RunFolder(folder).stored()
    assert stored is not None
    return str(stored["training"]["best"])
