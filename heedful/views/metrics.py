"""The numbers, notes and examples in a run's `metrics.jsonl`, whatever they are called.

A line is a JSON object with its step. Numbers become series, named by the path to them (`losses.mlm`); what stands
under `note` is a remark, and under `examples` a list to show.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heedful.errors import HeedfulError

# Beyond this a number cannot be drawn any more, and a run has come to grief as if it were infinite.
LARGEST = 1e300
# A series whose name holds one of these words is something to compare with: its last value is a level, not a curve.
BASELINES = frozenset({"baseline", "bigram", "chance", "majority", "random", "unigram"})


@dataclass(frozen=True)
class Series:
    """One number over the steps."""

    name: str
    steps: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)  # nan where there was no sensible number
    kinds: set[type] = field(default_factory=set)

    @property
    def prefix(self) -> str:
        """The path in front of the last name: `losses` of `losses.mlm`."""
        return self.name.rpartition(".")[0]

    @property
    def leaf(self) -> str:
        """The last name of the path."""
        return self.name.rpartition(".")[2]

    @property
    def panel(self) -> str:
        """What it is drawn together with: inside a group the same quantity, `loss` of `mlm_loss` and `nsp_loss`."""
        return f"{self.prefix}.{self.leaf.rpartition('_')[2]}" if self.prefix else self.name

    @property
    def is_baseline(self) -> bool:
        """Whether it is there to compare others with."""
        return not BASELINES.isdisjoint(self.leaf.lower().split("_"))

    @property
    def is_counter(self) -> bool:
        """Whether it only counts, and so says nothing as a curve."""
        return self.kinds == {int}

    @property
    def finite(self) -> list[float]:
        """The values that are numbers."""
        return [value for value in self.values if math.isfinite(value)]


@dataclass(frozen=True)
class Metrics:
    """All that a run has written down."""

    series: dict[str, Series] = field(default_factory=dict)
    notes: list[tuple[float, str]] = field(default_factory=list)
    examples: list[tuple[float, list[Any]]] = field(default_factory=list)

    @property
    def last_step(self) -> float:
        """The highest step that anything is told of."""
        steps = [step for series in self.series.values() for step in series.steps]
        return max(steps, default=0)

    def panels(self) -> dict[str, list[Series]]:
        """The series to draw, together with others of their kind; one that never moves is not drawn alone."""
        found: dict[str, list[Series]] = {}
        for series in self.series.values():
            if series.finite and not series.is_counter:
                found.setdefault(series.panel, []).append(series)
        return {name: group for name, group in found.items() if any(_is_worth_drawing(one) for one in group)}


def read_metrics(path: Path) -> Metrics:
    """Read the file; one that is missing or empty has no metrics, and a last line that is being written is left out."""
    metrics = Metrics()
    for row in _rows(path):
        step = float(row["step"])
        for name, value in _numbers({k: v for k, v in row.items() if k != "step"}):
            series = metrics.series.setdefault(name, Series(name))
            series.steps.append(step)
            series.values.append(_finite(value))
            series.kinds.update({type(value)} - {type(None)})
        if isinstance(row.get("note"), str):
            metrics.notes.append((step, row["note"]))
        if isinstance(row.get("examples"), list):
            metrics.examples.append((step, row["examples"]))
    return metrics


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return
    except OSError as error:
        raise HeedfulError(f"cannot be read: {error.strerror}", where=path, remedy="check the rights") from error
    for number, line in enumerate(lines[:-1], start=1):  # what follows the last line end is not finished
        if line.strip():
            yield _row(line, f"{path}:{number}")


def _row(line: bytes, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise HeedfulError(f"not a JSON line: {error}", where=where, remedy="remove the line") from None
    step = row.get("step") if isinstance(row, dict) else None
    if not isinstance(step, int | float) or not math.isfinite(_finite(step)):
        raise HeedfulError("the line is not an object with a step", where=where, remedy="remove the line")
    return dict(row)


def _numbers(value: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, float | None]]:
    """Every number below `value` with the path to it; null stands for a number that was not finite."""
    for name, item in value.items():
        if isinstance(item, Mapping):
            yield from _numbers(item, f"{path}{name}.")
        elif item is None or (isinstance(item, int | float) and not isinstance(item, bool)):
            yield path + name, item


def _finite(value: float | None) -> float:
    try:
        number = math.nan if value is None else float(value)
    except OverflowError:
        return math.nan
    return number if abs(number) < LARGEST else math.nan


def _is_worth_drawing(series: Series) -> bool:
    moves = len(series.values) == 1 or min(series.finite) < max(series.finite)
    return moves and not series.is_baseline
