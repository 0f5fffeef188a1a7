"""What `heedful evaluate` works out and prints."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from heedful.cli.console import table_console
from heedful.cli.progress import progress_bar
from heedful.data.labelled import Columns
from heedful.errors import HeedfulError
from heedful.inference.load import predictor
from heedful.inference.predictor import Evaluation, Predictor
from heedful.tasks.bootstrap import interval, paired

# The scores of which one says how right a single answer is, the first that a task has; errors count downwards.
SINGLE = ("accuracy", "f1", "squared_error")


@dataclass(frozen=True)
class Settings:
    """How much to say."""

    worst: int
    rounds: int
    as_json: bool


def evaluate(models: Sequence[str], path: str, columns: Columns, settings: Settings) -> None:
    """Score one or two models on a file and print what came out."""
    predictors = [predictor(model) for model in models]
    if len({one.task.name for one in predictors}) > 1:
        raise HeedfulError("the two models are for different tasks", remedy="compare models for the same task")
    results = [_scored(one, path, columns) for one in predictors]
    report = _report(predictors[0], results[0], settings)
    if len(results) == 2:
        report["compared"] = _comparison(predictors, results, settings)
    if settings.as_json:
        click.echo(json.dumps(report, ensure_ascii=False))
    else:
        _show(models, report)


def _scored(one: Predictor, path: str, columns: Columns) -> Evaluation:
    data = one.read(path, columns)
    for remark in data.remarks:
        click.echo(str(remark), err=True)
    with progress_bar("predicting", len(data.examples), "examples") as advance:
        predictions: list[Any] = []
        for chunk in one.stream(data.examples):
            predictions += chunk
            advance(len(predictions), len(predictions))
    return Evaluation(data, predictions, one.task.score(data.examples, predictions))


def _report(one: Predictor, result: Evaluation, settings: Settings) -> dict[str, Any]:
    examples, predictions = result.data.examples, result.predictions
    again = _Rescored(one, result)
    intervals = {
        name: interval(again.named(name), len(examples), settings.rounds) for name in result.scores if settings.rounds
    }
    return {
        "task": one.task.name,
        "examples": len(examples),
        "scores": dict(result.scores),
        "intervals": {name: list(both) for name, both in intervals.items()},
        "details": [vars(detail) for detail in one.task.details(examples, predictions)],
        "worst": _worst(one, result, settings.worst),
    }


class _Rescored:
    """The scores of choices of the examples; each choice is scored once, whichever of its scores is asked for."""

    def __init__(self, one: Predictor, result: Evaluation) -> None:
        self.task, self.examples, self.predictions = one.task, result.data.examples, result.predictions
        self.known: dict[bytes, Mapping[str, float]] = {}

    def named(self, name: str) -> Callable[[NDArray[np.int64]], float]:
        """The score of that name, nan where a choice has none, such as one without unanswerable questions."""
        return lambda chosen: self._scores(chosen).get(name, math.nan)

    def _scores(self, chosen: NDArray[np.int64]) -> Mapping[str, float]:
        key = hashlib.blake2b(chosen.tobytes(), digest_size=16).digest()
        if key not in self.known:
            numbers = chosen.tolist()
            picked = [self.examples[i] for i in numbers], [self.predictions[i] for i in numbers]
            self.known[key] = self.task.score(*picked)
        return self.known[key]


def _worst(one: Predictor, result: Evaluation, count: int) -> list[dict[str, Any]]:
    """The answers that are most wrong, the surest first."""
    ranked: list[tuple[float, float, int, Any, Any]] = []
    for example, prediction in zip(result.data.examples, result.predictions, strict=True):
        alone = one.task.score([example], [prediction])
        name = next((name for name in SINGLE if name in alone), None)
        if name is None:
            return []
        right = -alone[name] if name == "squared_error" else alone[name]
        if name == "squared_error" or right < 1:
            ranked.append((right, -float(prediction.get("probability", 0.0)), len(ranked), example, prediction))
    rows = sorted(ranked, key=lambda row: row[:3])[:count]
    return [{"where": e.where, "text": e.shown, "truth": e.truth, "said": said} for *_, e, said in rows]


def _comparison(predictors: Sequence[Predictor], results: Sequence[Evaluation], settings: Settings) -> dict[str, Any]:
    first, second = results
    again = [_Rescored(one, result) for one, result in zip(predictors, results, strict=True)]
    count = len(first.data.examples)
    differences = {
        name: paired(again[0].named(name), again[1].named(name), count, settings.rounds)._asdict()
        for name in first.scores
        if settings.rounds
    }
    return {"scores": dict(second.scores), "differences": differences}


def _show(models: Sequence[str], report: dict[str, Any]) -> None:
    click.echo(f"{report['task']}, {report['examples']:,} examples")
    for name, value in report["scores"].items():
        low_high = report["intervals"].get(name)
        click.echo(f"{name} {value:.4f}" + (f"  ({low_high[0]:.4f} to {low_high[1]:.4f})" if low_high else ""))
    console = table_console()
    for detail in report["details"]:
        table = Table(title=detail["title"], title_justify="left")
        for column in detail["columns"]:
            table.add_column(str(column))
        for row in detail["rows"]:
            table.add_row(*(f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in row))
        console.print(table)
    if report["worst"]:
        click.echo("\nthe surest of the wrong answers:")
    for row in report["worst"]:
        click.echo(f"  {row['where']}  {_short(row['text'])}")
        click.echo(f"      true: {_short(row['truth'])}   said: {_said(row['said'])}")
    if "compared" in report:
        _show_comparison(models, report["compared"])


def _show_comparison(models: Sequence[str], compared: dict[str, Any]) -> None:
    click.echo(f"\n{models[1]}, and how far {models[0]} is above it:")
    for name, value in compared["scores"].items():
        line = f"{name} {value:.4f}"
        found = compared["differences"].get(name)
        if found:
            line += f"  {found['difference']:+.4f} ({found['low']:+.4f} to {found['high']:+.4f}, p = {found['p']:.3f})"
        click.echo(line)


def _said(prediction: dict[str, Any]) -> str:
    plain = {k: v for k, v in prediction.items() if isinstance(v, str | int | float)}
    return ", ".join(f"{k} {v:.3f}" if isinstance(v, float) else f"{v}" for k, v in plain.items()) or _short(
        json.dumps(prediction, ensure_ascii=False)
    )


def _short(text: str, most: int = 100) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
