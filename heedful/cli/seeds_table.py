"""The scores of several seeds as a table: each run, mean and spread."""

from __future__ import annotations

import math

import numpy as np
from rich.table import Table
from rich.text import Text

from heedful.cli.console import table_console
from heedful.runs.finetuning.seeds import Seeds


def show_seeds(seeds: Seeds) -> None:
    """Print the table, if all runs have ended."""
    if seeds.best is None:
        return
    table = Table()
    names = list(seeds.runs[seeds.best].scores)
    for name in ("seed", *names, ""):
        table.add_column(Text(name))
    for seed, run in seeds.runs.items():
        notes = [*(["best, kept"] if seed == seeds.best else []), *(["collapsed"] if seed in seeds.collapsed else [])]
        table.add_row(str(seed), *(f"{run.scores.get(name, math.nan):.4f}" for name in names), ", ".join(notes))
    spreads = []
    for name in names:
        values = [run.scores.get(name, math.nan) for run in seeds.runs.values()]
        spreads.append(f"{np.mean(values):.4f} ± {np.std(values, ddof=1):.4f}")
    table.add_row("mean", *spreads, Text(f"by {seeds.decides}"))
    table_console().print(table)
