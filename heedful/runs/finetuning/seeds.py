"""The same fine-tuning from several seeds: mean and spread, and the best run's model."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from heedful.errors import HeedfulError
from heedful.runs.finetuning.material import Material
from heedful.runs.finetuning.plan import training_of
from heedful.runs.finetuning.run import SEEDS, finetune
from heedful.runs.finetuning.settings import FinetuningSettings
from heedful.runs.finetuning.several import keep_model, keep_settings
from heedful.runs.run import Run, Stage, Trial, first_process
from heedful.runs.score_file import write_scores
from heedful.training.budget import TRIAL_STEPS
from heedful.training.distributed import restarted
from heedful.training.run_folder import RunFolder

# A run so many typical deviations of the others below their median has not learned, as happens with small data and
# large rates; where the others agree, it is one that is so much below them.
DEVIATIONS, LEAST = 4.0, 0.05


@dataclass(frozen=True)
class Seeds:
    """Runs of several seeds that have ended, all but perhaps the last one finished."""

    folder: Path
    runs: Mapping[int, Run]
    decides: str  # the score that chose
    best: int | None = None  # the seed of the best run; None where one was stopped, or in a process that only helps
    collapsed: tuple[int, ...] = ()  # the seeds that have not learned

    @property
    def last(self) -> Run:
        """The run that ended last."""
        return list(self.runs.values())[-1]

    @property
    def as_run(self) -> Run:
        """All of them as one run, whose model is that of the best."""
        if self.best is None:
            return replace(self.last, folder=self.folder)
        best = self.runs[self.best]
        return Run(self.folder, self.last.outcome, best.scores, self._trials(), best.folder)

    def _trials(self) -> list[Trial]:
        return [
            Trial(run.folder, {"seed": seed}, run.scores, remark=self._remark(seed)) for seed, run in self.runs.items()
        ]

    def _remark(self, seed: int) -> str:
        told = {"best, kept": seed == self.best, "collapsed": seed in self.collapsed}
        return ", ".join(text for text, so in told.items() if so)


def run_seeds(settings: FinetuningSettings, stage: Stage) -> Seeds:
    """Run seed, seed + 1, …, each in a folder of its own; the best one's model becomes that of the whole."""
    training = training_of(settings, TRIAL_STEPS)
    if training.best is None:
        raise HeedfulError("several seeds need dev data to choose by", remedy="give `dev`")
    output = stage.folder.path
    _check_free(output, stage.resume or restarted())
    keep_settings(settings, output)
    material = Material.of(settings)
    training = training_of(material.decided(settings), TRIAL_STEPS)
    assert training.best is not None
    runs: dict[int, Run] = {}
    steps = None
    for seed in range(settings.seed, settings.seed + settings.seeds):
        one = replace(stage, folder=RunFolder(output / f"seed-{seed}"))
        runs[seed] = finetune(replace(settings, seed=seed), one, material, steps)
        if not runs[seed].outcome.finished:
            return Seeds(output, runs, training.best)
        # A time is measured once: all seeds train alike.
        steps = runs[seed].outcome.steps if settings.budget else None
    if not first_process():  # which alone has evaluated
        return Seeds(output, runs, training.best)
    return _conclude(runs, output, training.best, training.higher_is_better)


def _check_free(output: Path, resume: bool) -> None:
    """Refuse a folder that holds something else, or the same without being told to go on with it."""
    if RunFolder(output).holds_run():
        what, remedy = "there is a run of a single seed in this folder", "name another folder"
        raise HeedfulError(what, where=output, remedy=remedy)
    if not resume and ((output / SEEDS).exists() or (output / "model").exists() or [*output.glob("seed-*")]):
        what, remedy = "there are runs in this folder already", "go on with them by `resume`, or name another folder"
        raise HeedfulError(what, where=output, remedy=remedy)


def _conclude(runs: Mapping[int, Run], output: Path, decides: str, higher_is_better: bool) -> Seeds:
    """Choose the best run, and put its model and the scores of all in place."""
    sign = 1 if higher_is_better else -1
    values = {seed: sign * run.scores[decides] for seed, run in runs.items()}
    best = max(values, key=lambda seed: -math.inf if math.isnan(values[seed]) else values[seed])
    keep_model(runs[best].folder, output)
    scores = {str(seed): dict(run.scores) for seed, run in runs.items()}
    write_scores(output / SEEDS, {"decides": decides, "best": best, "runs": scores})
    lost = collapsed(list(values.values()))
    return Seeds(output, runs, decides, best, tuple(seed for seed, fallen in zip(runs, lost, strict=True) if fallen))


def collapsed(values: Sequence[float]) -> list[bool]:
    """Which runs, by a value of which more is better, fell far below the median of the others; NaN always has."""
    return [
        math.isnan(value) or _far_below(value, [v for other, v in enumerate(values) if other != i and v == v])
        for i, value in enumerate(values)
    ]


def _far_below(value: float, others: Sequence[float]) -> bool:
    if not others:
        return False
    middle = statistics.median(others)
    typical = statistics.median(abs(other - middle) for other in others)
    return middle - value > max(DEVIATIONS * typical, LEAST)
