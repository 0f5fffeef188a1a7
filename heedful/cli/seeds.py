"""The same fine-tuning from several seeds: mean and spread, and the best run's model."""

from __future__ import annotations

import math
import shutil
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.table import Table
from rich.text import Text

from heedful.atomic import atomic_folder
from heedful.cli.console import table_console
from heedful.cli.finetune_material import Material
from heedful.cli.finetune_plan import Plan
from heedful.cli.finetune_run import Finished, run
from heedful.cli.score_file import write_scores
from heedful.cli.training_run import first_process
from heedful.errors import HeedfulError
from heedful.training.distributed import restarted
from heedful.training.run_folder import RunFolder

SEEDS = "seeds.json"
# A run so many typical deviations of the others below their median has not learned, as happens with small data and
# large rates; where the others agree, it is one that is so much below them.
DEVIATIONS, LEAST = 4.0, 0.05


def run_seeds(plan: Plan, output: Path, seeds: int, resume: bool) -> int:
    """Run seed, seed + 1, …, each in a folder of its own; the best one's model becomes that of the whole."""
    if plan.training.best is None:
        raise HeedfulError("several seeds need dev data to choose by", remedy="give --dev FILE")
    _check_free(output, resume or restarted())
    material = Material.of(plan)
    finished: dict[int, Finished] = {}
    steps = None
    for seed in range(plan.training.seed, plan.training.seed + seeds):
        one = run(plan.with_training(seed=seed), output / f"seed-{seed}", resume, material, steps)
        if not one.outcome.finished:
            return one.outcome.exit_code
        finished[seed] = one
        steps = one.outcome.steps if plan.budget else None  # a time is measured once: all seeds train alike
    if first_process():  # which alone has evaluated
        _conclude(finished, output, plan.training.best, plan.training.higher_is_better)
    return 0


def _check_free(output: Path, resume: bool) -> None:
    """Refuse a folder that holds something else, or the same without being told to go on with it."""
    if RunFolder(output).holds_run():
        what, remedy = "there is a run of a single seed in this folder", "name another folder"
        raise HeedfulError(what, where=output, remedy=remedy)
    if not resume and ((output / SEEDS).exists() or (output / "model").exists() or [*output.glob("seed-*")]):
        what, remedy = "there are runs in this folder already", "go on with them by --resume, or name another folder"
        raise HeedfulError(what, where=output, remedy=remedy)


def _conclude(finished: Mapping[int, Finished], output: Path, decides: str, higher_is_better: bool) -> None:
    """Choose the best run, put its model and the scores of all in place, and show them."""
    sign = 1 if higher_is_better else -1
    values = {seed: sign * one.scores[decides] for seed, one in finished.items()}
    best = max(values, key=lambda seed: -math.inf if math.isnan(values[seed]) else values[seed])
    with atomic_folder(output / "model", overwrite=True) as folder:
        shutil.copytree(finished[best].folder / "model", folder, dirs_exist_ok=True)
    runs = {str(seed): dict(one.scores) for seed, one in finished.items()}
    write_scores(output / SEEDS, {"decides": decides, "best": best, "runs": runs})
    _show(finished, decides, best, collapsed(list(values.values())))


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


def _show(finished: Mapping[int, Finished], decides: str, best: int, lost: Sequence[bool]) -> None:
    table = Table()
    names = list(finished[best].scores)
    for name in ("seed", *names, ""):
        table.add_column(Text(name))
    for (seed, one), fallen in zip(finished.items(), lost, strict=True):
        note = ", ".join([*(["best, kept"] if seed == best else []), *(["collapsed"] if fallen else [])])
        table.add_row(str(seed), *(f"{one.scores.get(name, math.nan):.4f}" for name in names), note)
    spreads = []
    for name in names:
        values = [one.scores.get(name, math.nan) for one in finished.values()]
        spreads.append(f"{np.mean(values):.4f} ± {np.std(values, ddof=1):.4f}")
    table.add_row("mean", *spreads, Text(f"by {decides}"))
    table_console().print(table)
