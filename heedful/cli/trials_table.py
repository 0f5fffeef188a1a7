"""Several runs as a table: what is other about each, its scores, and of seeds their mean and spread."""

from __future__ import annotations

import math
import statistics

from rich.table import Table
from rich.text import Text

from heedful.cli.console import table_console
from heedful.runs.run import Run, Trial


def show_trials(run: Run) -> None:
    """Print the table, if several runs were compared and all of them have ended."""
    if not run.trials:
        return
    values, scores = list(run.trials[0].values), list(run.scores)
    table = Table()
    for name in (*values, *scores, ""):
        table.add_column(Text(name))
    for trial in run.trials:
        cells = [*(f"{trial.values[name]}" for name in values), *(_score(trial, name) for name in scores), trial.remark]
        table.add_row(*map(Text, cells))
    if values == ["seed"]:
        columns = [[trial.scores.get(name, math.nan) for trial in run.trials] for name in scores]
        spreads = [f"{statistics.fmean(column):.4f} ± {statistics.stdev(column):.4f}" for column in columns]
        table.add_row("mean", *spreads)
    table_console().print(table)


def _score(trial: Trial, name: str) -> str:
    mean = f"{trial.scores.get(name, math.nan):.4f}"
    return f"{mean} ± {trial.spread[name]:.4f}" if name in trial.spread else mean
