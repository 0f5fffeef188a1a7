"""The ladder as a whole: what is asked is checked, every rung climbed in a process of its own, and one table made."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.data.corpus.corpus import Corpus
from heedful.errors import HeedfulError
from heedful.inference.judged_pairs import read_pairs
from heedful.runs.budget import parse_budget
from heedful.runs.ladder.children import Child, run_all
from heedful.runs.ladder.measured import Measured
from heedful.runs.ladder.measurements import name_of_pairs
from heedful.runs.ladder.rung_run import PAIRS, PERPLEXITY, SIZE, SPEED, TRAINING
from heedful.runs.ladder.rungs import Rung, pretraining_of, rungs_of
from heedful.runs.ladder.settings import LadderSettings
from heedful.runs.ladder.tasks import check_tasks, tasks_of, write_toy
from heedful.runs.ladder.trials import WAYS
from heedful.runs.pretraining.plan import parse_phases
from heedful.runs.run import Stage
from heedful.runs.score_file import write_scores
from heedful.runs.settings import storable
from heedful.runs.settings_file import write_settings
from heedful.training.events import Event
from heedful.views.ladder_page import NOT_YET, write_ladder_page

TABLE, PAGE = "ladder.json", "ladder.html"


@dataclass(frozen=True)
class Ladder:
    """What became of each model."""

    folder: Path
    rows: Sequence[Mapping[str, Any]]  # a model each, as in ladder.json
    signal: int | None = None  # the signal that stopped it

    @property
    def report(self) -> Path:
        """The page with the table and the pictures."""
        return self.folder / PAGE

    @property
    def exit_code(self) -> int:
        """0; of a ladder that was stopped that of its signal, and 1 where no model could be trained."""
        if self.signal is not None:
            return 128 + self.signal
        return int(all("steps" not in row[TRAINING] for row in self.rows))


def climb(settings: LadderSettings, stage: Stage) -> Ladder:
    """Train and measure every model that has not been, and put the table together."""
    output, rungs = stage.folder.path, rungs_of(settings.models)
    _check(settings, rungs, output)
    _check_free(output, stage.resume)
    tasks = tasks_of(settings.tasks, output)
    write_toy(tasks, output)
    check_tasks(tasks)
    write_settings(settings, output)
    if not settings.pairs:
        stage.note("no judged pairs are given: the similarity of words is left out")
    lock = threading.Lock()

    def hear(event: Event) -> None:
        with lock:
            stage.tell(event)

    def conclude(child: Child | None = None) -> list[dict[str, Any]]:
        with lock:
            return conclusion(settings, rungs, output)

    children = [Child(rung, settings, stage.tensorboard, hear) for rung in rungs]
    signal = run_all(children, settings.at_once, stage.signals, conclude)
    return Ladder(output, conclude(), signal)


def conclusion(settings: LadderSettings, rungs: Sequence[Rung], output: Path) -> list[dict[str, Any]]:
    """Write ladder.json and ladder.html from what is known by now; gives the rows."""
    rows = [row_of(rung, settings) for rung in rungs]
    told = {"budget": settings.budget, "size": settings.size, "settings": storable(settings), "rows": rows}
    write_scores(output / TABLE, told)
    write_ladder_page(output / PAGE, told, {rung.name: output / rung.name for rung in rungs})
    return rows


def row_of(rung: Rung, settings: LadderSettings) -> dict[str, Any]:
    """All that is known of a rung; a measurement that is missing has its reason, or was not taken yet."""
    output = Path(settings.output)
    measured, pretraining = Measured(output / rung.name), pretraining_of(rung, settings)
    pairs = {name: measured.told(f"{PAIRS} {name}") for name in map(name_of_pairs, settings.pairs)}
    tasks = {
        task.name: {way: measured.told(f"{way} {task.name}") for way in WAYS}
        for task in tasks_of(settings.tasks, output)
    }
    training = measured.told(TRAINING) or {"reason": NOT_YET}
    return {
        "model": rung.name,
        "sees": rung.sees,
        "start": pretraining.init,
        "learning_rate": pretraining.learning_rate,
        "reason": _reason(measured, training),
        TRAINING: training,
        **{name: measured.told(name) for name in (SIZE, SPEED, PERPLEXITY)},
        PAIRS: pairs,
        "tasks": tasks,
    }


def _reason(measured: Measured, training: Mapping[str, Any]) -> str | None:
    ended = measured.told("process") or training
    reason: str | None = ended.get("reason")
    return reason


def _check(settings: LadderSettings, rungs: Sequence[Rung], output: Path) -> None:
    """Refuse what cannot be, before anything is trained for an hour."""
    parse_budget(settings.budget)
    parse_phases(settings.phases)
    Corpus.open(settings.corpus)
    for rung in rungs:
        pretraining_of(rung, settings)
    for pairs in settings.pairs:
        read_pairs(pairs)
    if settings.valid is not None and not Path(settings.valid).is_file():
        raise HeedfulError("there is no such file", where=settings.valid, remedy="name a text file as `valid`")
    tasks_of(settings.tasks, output)


def _check_free(output: Path, resume: bool) -> None:
    if not resume and ((output / TABLE).exists() or [*output.glob("*/config.toml")]):
        what, remedy = "there are runs in this folder already", "go on with them by `resume`, or name another folder"
        raise HeedfulError(what, where=output, remedy=remedy)
