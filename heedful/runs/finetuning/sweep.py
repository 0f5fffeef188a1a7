"""The same fine-tuning with several values of some settings: every combination, and the best by dev."""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_type_hints

from heedful.errors import HeedfulError
from heedful.runs.finetuning.plan import Plan, training_of
from heedful.runs.finetuning.run import finetune
from heedful.runs.finetuning.seeds import run_seeds
from heedful.runs.finetuning.settings import FinetuningSettings
from heedful.runs.finetuning.several import keep_model, keep_settings
from heedful.runs.overrides import typed
from heedful.runs.run import Run, Stage, Trial, first_process
from heedful.runs.score_file import write_scores
from heedful.runs.settings import names_by_option
from heedful.training.budget import TRIAL_STEPS
from heedful.training.run_folder import RunFolder
from heedful.training.training_config import TrainingConfig
from heedful.views.comparison import read_runs, write_comparison
from heedful.views.report import REPORT

SWEEP = "sweep.json"
# What all runs must have in common to be compared, or what names them.
COMMON = ("task", "output", "dev", "metric", "label", "seed", "seeds", "sweep", "shard")


def run_sweep(settings: FinetuningSettings, stage: Stage) -> Run:
    """Run every combination in a folder of its own; the model of the best one becomes that of the whole."""
    points = combinations(settings)
    training = training_of(settings, TRIAL_STEPS)
    if training.best is None:
        raise HeedfulError("a sweep needs dev data to choose by", remedy="give `dev`")
    output = stage.folder.path
    _check_free(output, stage.resume)
    keep_settings(settings, output)
    trials: list[Trial] = []
    for values in points:
        folder = output / name_of(values)
        one = replace(settings, output=folder, sweep={}, **values)
        stage.note(f"{folder.name}: run {len(trials) + 1} of {len(points)}")
        place = replace(stage, folder=RunFolder(folder))
        run = run_seeds(one, place).as_run if settings.seeds > 1 else finetune(one, place)
        if not run.outcome.finished:
            return replace(run, folder=output, trials=())
        trials.append(_trial(values, run))
    outcome = run.outcome
    if not first_process():  # which alone has evaluated
        return Run(output, outcome, {})
    stored = RunFolder(trials[0].folder).stored_as(Plan)
    training = stored.training if stored else training  # what decides may be told by the dev data
    assert training.best is not None
    best = _best(trials, training)
    trials[best] = replace(trials[best], remark="best, kept")
    _conclude(trials, trials[best], training.best, output)
    return Run(output, outcome, trials[best].scores, trials, trials[best].folder)


def combinations(settings: FinetuningSettings) -> list[dict[str, Any]]:
    """The values of every run, by the names of fields; a text holds several values, with commas between them."""
    hints, names = get_type_hints(FinetuningSettings), _names()
    values: dict[str, list[Any]] = {}
    for given, several in settings.sweep.items():
        if given not in names:
            near = difflib.get_close_matches(given, names, n=1)
            remedy = f"did you mean {near[0]}?" if near else f"the fields are {', '.join(names)}"
            raise HeedfulError(f"`sweep` {given}: there is no such field to try values of", remedy=remedy)
        texts = several.split(",") if isinstance(several, str) else several
        if isinstance(texts, Mapping) or not isinstance(texts, Sequence):
            raise HeedfulError(f"`sweep` {given} is {several!r}", remedy="give several values, as [1e-5, 3e-5]")
        name = names[given]
        values[name] = [typed(name, one, hints[name], "`sweep`") for one in texts]
    found = [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]
    if len({name_of(one) for one in found}) < len(found):
        raise HeedfulError("`sweep` has a value twice", remedy="give each value once")
    return found


def name_of(values: Mapping[str, Any]) -> str:
    """The folder of the run with these values."""
    told = (f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in values.items())
    return re.sub(r"[^\w.=,+-]+", "-", ",".join(told))


def _names() -> dict[str, str]:
    """The fields that may be tried, by their names and by those of their options."""
    fields = [field for field in dataclasses.fields(FinetuningSettings) if field.name not in COMMON]
    return {**names_by_option(fields), **{field.name: field.name for field in fields}}


def _check_free(output: Path, resume: bool) -> None:
    if RunFolder(output).holds_run():
        raise HeedfulError("there is a single run in this folder", where=output, remedy="name another folder")
    if not resume and ((output / SWEEP).exists() or [*output.glob("*=*/")]):
        what, remedy = "there are runs in this folder already", "go on with them by `resume`, or name another folder"
        raise HeedfulError(what, where=output, remedy=remedy)


def _trial(values: Mapping[str, Any], run: Run) -> Trial:
    """A run, or the mean of its seeds."""
    if not run.trials:
        return Trial(run.folder, values, run.scores)
    columns = {name: [one.scores.get(name, math.nan) for one in run.trials] for name in run.scores}
    means = {name: statistics.fmean(column) for name, column in columns.items()}
    spread = {name: statistics.stdev(column) for name, column in columns.items()}
    return Trial(run.kept or run.folder, values, means, spread)


def _best(trials: Sequence[Trial], training: TrainingConfig) -> int:
    assert training.best is not None
    sign = 1 if training.higher_is_better else -1
    values = [sign * trial.scores[training.best] for trial in trials]
    return max(range(len(values)), key=lambda i: -math.inf if math.isnan(values[i]) else values[i])


def _conclude(trials: Sequence[Trial], best: Trial, decides: str, output: Path) -> None:
    """Put the model of the best run, the scores of all and the page about them in place."""
    keep_model(best.folder, output)
    rows = [{"values": dict(one.values), "scores": dict(one.scores), "spread": dict(one.spread)} for one in trials]
    write_scores(output / SWEEP, {"decides": decides, "best": dict(best.values), "runs": rows})
    write_comparison(read_runs([one.folder for one in trials]), output / REPORT)
