"""Several runs on one page: a table of what each reached, and their evaluations as curves side by side."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.atomic import atomic_file
from heedful.errors import HeedfulError
from heedful.json_files import read_json
from heedful.views.markup import markup
from heedful.views.metrics import Metrics, Series, read_metrics
from heedful.views.page import section, table, whole_page, words
from heedful.views.svg import Curve, line_chart

METRICS, SCORES = "metrics.jsonl", "scores.json"
EVALUATION = "evaluation"


@dataclass(frozen=True)
class Run:
    """A run by its name, what it reached, and how."""

    name: str
    scores: dict[str, float]
    metrics: Metrics


def read_runs(folders: Sequence[str | Path]) -> list[Run]:
    """What run folders hold: the scores of the weights they kept, else those of the last evaluation."""
    paths = [Path(folder).resolve() for folder in folders]
    together = len({path.name for path in paths}) == len(paths)
    return [_run(path, path.name if together else f"{path.parent.name}/{path.name}") for path in paths]


def write_comparison(runs: Sequence[Run], path: str | Path) -> Path:
    """Write the page; gives its path."""
    output = Path(path)
    with atomic_file(output) as file:
        file.write(whole_page("Runs compared", output.stem, "", [_scores(runs), *_curves(runs)]))
    return output


def _run(path: Path, name: str) -> Run:
    if not (path / METRICS).is_file():
        remedy = f"give folders with a {METRICS}, as training writes it"
        raise HeedfulError("there is no run in this folder", where=path, remedy=remedy)
    metrics = read_metrics(path / METRICS)
    if (path / SCORES).is_file():
        scores = {k: math.nan if v is None else float(v) for k, v in read_json(path / SCORES).items()}
    else:
        scores = {series.leaf: series.values[-1] for series in _evaluations(metrics)}
    return Run(name, scores, metrics)


def _evaluations(metrics: Metrics) -> list[Series]:
    return [series for series in metrics.series.values() if series.prefix == EVALUATION]


def _scores(runs: Sequence[Run]) -> str:
    rows = [{"run": run.name, **{name: f"{value:.4f}" for name, value in run.scores.items()}} for run in runs]
    return section("Scores", f'<div class="card">{table(rows)}</div>')


def _curves(runs: Sequence[Run]) -> list[str]:
    """A section for the runs that were evaluated by the same scores, with a chart for each score."""
    kinds: dict[str, list[Run]] = {}
    for run in runs:
        kinds.setdefault(json.dumps([series.leaf for series in _evaluations(run.metrics)]), []).append(run)
    return [_kind(group) for names, group in kinds.items() if json.loads(names)]


def _kind(runs: Sequence[Run]) -> str:
    charts = [_chart(series.name, runs) for series in _evaluations(runs[0].metrics) if not series.is_baseline]
    return section(", ".join(run.name for run in runs), f'<div class="charts">{"".join(charts)}</div>')


def _chart(name: str, runs: Sequence[Run]) -> str:
    found = [(run.name, run.metrics.series[name]) for run in runs]
    curves = [Curve(run, list(zip(series.steps, series.values, strict=True)), False) for run, series in found]
    title = words(found[0][1].leaf)
    end = max(run.metrics.last_step for run in runs)
    return f'<figure class="card"><h3>{markup(title)}</h3>{line_chart(title, curves, end)}</figure>'
