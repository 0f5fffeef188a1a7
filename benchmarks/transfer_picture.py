"""Draw what pretraining is worth: docs/results/finetune_transfer.svg from finetune_transfer.json beside it.

    python benchmarks/transfer_picture.py

A panel for each task, the score against the training rows: the pretrained model, and the same shape with random
weights. It may be drawn before all runs are done; what is not there yet is left out.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from finetune_experiments import TRANSFER
from results_file import RESULTS
from standalone_svg import panels, standalone

from heedful.atomic import atomic_file
from heedful.views.svg import Curve, line_chart

METRICS = {run.name: run.metrics[0] for run in TRANSFER.runs}


def main() -> None:
    source = RESULTS / f"finetune_{TRANSFER.name}.json"
    if not source.exists():
        sys.exit(f"{source.name} is not there yet: run python benchmarks/finetune.py {TRANSFER.name}")
    print("->", draw(source))


def draw(source: Path) -> Path:
    """Draw the runs of a results file into an SVG file of the same name."""
    picture = source.with_suffix(".svg")
    drawn = standalone(panels(charts(json.loads(source.read_text(encoding="utf-8"))["runs"])))
    with atomic_file(picture) as file:
        file.write(drawn)
    return picture


def charts(runs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """A chart for each task, by its heading; the runs are named `TASK ROWS WEIGHTS`."""
    curves: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for run in runs:
        task, rows, weights = run["run"].rsplit(" ", 2)
        metric = METRICS[run["run"]]
        lines = curves.setdefault(f"{task}, {metric}", {})
        if run["scores"][metric] is not None:
            lines.setdefault(weights, []).append((int(rows), run["scores"][metric]))
    return {heading: _chart(heading, lines) for heading, lines in curves.items() if lines}


def _chart(heading: str, lines: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    end = max(rows for points in lines.values() for rows, _ in points)
    drawn = [Curve(weights, sorted(lines[weights])) for weights in sorted(lines)]
    return line_chart(heading, drawn, end, x_name="training rows, at most")


if __name__ == "__main__":
    main()
