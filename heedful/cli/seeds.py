"""The same fine-tuning from several seeds: mean and spread, and the best run's model."""

from __future__ import annotations

import math
import shutil
import statistics
from pathlib import Path

from rich.table import Table

from heedful.atomic import atomic_folder
from heedful.cli.console import table_console
from heedful.cli.finetune_plan import Plan
from heedful.cli.finetune_run import Finished, run
from heedful.errors import HeedfulError
from heedful.json_files import write_json

# A run this many spreads of the others below their mean has not learned: small data and large rates do that.
COLLAPSED = 4.0


def run_seeds(plan: Plan, output: Path, seeds: int, resume: bool) -> int:
    """Run seed, seed + 1, …, each in a folder of its own; the best one's model becomes that of the whole."""
    decides = plan.training.best
    if decides is None:
        raise HeedfulError("several seeds need dev data to choose by", remedy="give --dev FILE")
    finished: dict[int, Finished] = {}
    for seed in range(plan.training.seed, plan.training.seed + seeds):
        one = run(plan.with_training(seed=seed), output / f"seed-{seed}", resume)
        if not one.outcome.finished:
            return one.outcome.exit_code
        finished[seed] = one
    values = {seed: one.scores[decides] for seed, one in finished.items()}
    best, lost = max(values, key=lambda seed: values[seed]), collapsed(list(values.values()))
    with atomic_folder(output / "model", overwrite=True) as folder:
        shutil.copytree(finished[best].folder / "model", folder, dirs_exist_ok=True)
    write_json(
        output / "seeds.json",
        {"decides": decides, "best": best, "runs": {str(seed): dict(one.scores) for seed, one in finished.items()}},
    )
    _show(finished, decides, best, lost)
    return 0


def collapsed(values: list[float]) -> list[bool]:
    """Which runs fell far below the middle of all: more than 4 typical deviations, and by at least 0.05."""
    middle = statistics.median(values)
    typical = statistics.median(abs(value - middle) for value in values)
    return [math.isnan(value) or middle - value > max(COLLAPSED * typical, 0.05) for value in values]


def _show(finished: dict[int, Finished], decides: str, best: int, lost: list[bool]) -> None:
    table = Table()
    names = list(finished[best].scores)
    for name in ("seed", *names, ""):
        table.add_column(name)
    for (seed, one), fallen in zip(finished.items(), lost, strict=True):
        note = "collapsed" if fallen else "best, kept" if seed == best else ""
        table.add_row(str(seed), *(f"{one.scores[name]:.4f}" for name in names), note)
    spreads = []
    for name in names:
        values = [one.scores[name] for one in finished.values()]
        spreads.append(f"{statistics.mean(values):.4f} ± {statistics.stdev(values):.4f}")
    table.add_row("mean", *spreads, f"by {decides}")
    table_console().print(table)
