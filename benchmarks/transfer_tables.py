"""The tables of transfer.py: both sides of each task, and the interval of their difference."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from results_file import Table
from transfer_tasks import TASKS, Task

WEIGHTS = ("own", "random")
COLUMNS = ("rows, epochs", "score on dev", "one answer for all", "own (rate)", "random (rate)", "own − random (95 %)")
# The 97.5 % quantile of Student's distribution, by degrees of freedom.
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
Runs = Collection[Mapping[str, Any]]


def tables(ways: Sequence[str], runs: Runs) -> list[Table]:
    """A table for each way of learning that has been run."""
    found = ((way, [row for task in TASKS if (row := compared(task, way, runs))]) for way in ways)
    return [Table([way, *COLUMNS, "seeds"], rows) for way, rows in found if rows]


def compared(task: Task, way: str, runs: Runs) -> list[Any] | None:
    """A row of a table, a seed beside the same seed; None while there is no such pair."""
    own, random = ({run["seed"]: run for run in runs if _of(run) == (task.name, way, side)} for side in WEIGHTS)
    seeds = sorted(own.keys() & random.keys())
    if not seeds:
        return None
    both = [[side[seed]["score"] for seed in seeds] for side in (own, random)]
    one = own[seeds[0]]
    return [
        f"{task.name}, cased" if one.get("cased") else task.name,
        f"{one['rows']:,}, {one['epochs']}",
        f"{task.metric}, {one['dev_rows']:,} rows",
        f"{task.one_answer():.3f}",
        *(
            f"{statistics.mean(scores):.4f} ({side[seeds[0]]['rate']:g})"
            for side, scores in zip((own, random), both, strict=True)
        ),
        interval([ours - theirs for ours, theirs in zip(*both, strict=True)]),
        len(seeds),
    ]


def _of(run: Mapping[str, Any]) -> tuple[str, str, str] | None:
    return None if run["choosing"] else (run["task"], run["way"], run["weights"])


def interval(differences: Sequence[float]) -> str:
    """Their mean with Student's interval."""
    mean = statistics.mean(differences)
    if len(differences) < 2:
        return f"{mean:+.4f}"
    half = STUDENT[len(differences) - 2] * statistics.stdev(differences) / math.sqrt(len(differences))
    return f"{mean:+.4f} ({mean - half:+.4f} to {mean + half:+.4f})"
