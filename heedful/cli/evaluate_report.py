"""What `heedful evaluate` works out and prints."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from rich.text import Text

from heedful.cli.console import table_console
from heedful.cli.predict_file import tell_cut
from heedful.cli.progress import progress_bar
from heedful.data.labelled import Columns
from heedful.errors import HeedfulError
from heedful.inference.load import predictor
from heedful.inference.predictor import Evaluation, Predictor
from heedful.json_files import finite
from heedful.tasks.bootstrap import interval, paired

# The scores of which one says how right a single answer is, the first that a task has; errors count downwards.
SINGLE = ("accuracy", "f1", "squared_error")


@dataclass(frozen=True)
class Settings:
    """How much to say."""

    worst: int
    rounds: int
    as_json: bool
    force: bool = False  # take a tokenizer of far fewer pieces than the model has rows


def evaluate(models: Sequence[str], path: str, columns: Columns, settings: Settings) -> None:
    """Score one or two models on a file and print what came out."""
    predictors = [predictor(model, force=settings.force) for model in models]
    if len({one.task.name for one in predictors}) > 1:
        raise HeedfulError("the two models are for different tasks", remedy="compare models for the same task")
    results = [_scored(one, path, columns) for one in predictors]
    _check_same_truth(results)
    report = _report(predictors[0], results[0], settings)
    with progress_bar("resampling", settings.rounds * len(results), "rounds") as advance:
        rounds = count(1)
        first, *others = (
            _Rescored(*pair, lambda: advance(done := next(rounds), done))
            for pair in zip(predictors, results, strict=True)
        )
        report["intervals"] = _intervals(first, settings.rounds)
        for second in others:
            report["compared"] = _comparison(first, second, settings.rounds)
    if settings.as_json:
        click.echo(json.dumps(finite(report), ensure_ascii=False, allow_nan=False))
    else:
        _show(models, report)


def _scored(one: Predictor, path: str, columns: Columns) -> Evaluation:
    data = one.read(path, columns)
    for remark in data.remarks:
        click.echo(str(remark), err=True)
    with progress_bar("predicting", len(data.examples), "examples") as advance:
        result = one.evaluate(data, lambda done: advance(done, done))
    tell_cut(sum("cut" in answer for answer in result.predictions), len(data.examples))
    return result


def _check_same_truth(results: Sequence[Evaluation]) -> None:
    """Two models can only be compared by the same truth, though one may look at more of the texts than the other."""
    first, *others = ([example.truth for example in result.data.examples] for result in results)
    if any(truth != first for truth in others):
        remedy = "name the column for both with --label"
        raise HeedfulError("the two models were trained on different columns of labels", remedy=remedy)


def _report(one: Predictor, result: Evaluation, settings: Settings) -> dict[str, Any]:
    examples, predictions = result.data.examples, result.predictions
    return {
        "task": one.task.name,
        "examples": len(examples),
        "scores": dict(result.scores),
        "details": [vars(detail) for detail in one.task.details(examples, predictions)],
        "worst": _worst(one, result, settings.worst),
    }


class _Rescored:
    """The scores of choices of the examples; each choice is scored once, whoever asks for whichever of its scores."""

    def __init__(self, one: Predictor, result: Evaluation, tick: Callable[[], object]) -> None:
        """`tick` is called for each choice that is scored."""
        self.scores, self.examples, self.tick = result.scores, len(result.data.examples), tick
        self.rescorer = one.task.rescorer(result.data.examples, result.predictions)
        self.known: dict[bytes, Mapping[str, float]] = {_key(np.arange(self.examples)): result.scores}

    def named(self, name: str) -> Callable[[NDArray[np.int64]], float]:
        """The score of that name, nan where a choice has none, such as one without unanswerable questions."""
        return lambda chosen: self._scores(chosen).get(name, math.nan)

    def _scores(self, chosen: NDArray[np.int64]) -> Mapping[str, float]:
        key = _key(chosen)
        if key not in self.known:
            self.known[key] = self.rescorer(chosen)
            self.tick()
        return self.known[key]


def _key(chosen: NDArray[np.int64]) -> bytes:
    return hashlib.blake2b(chosen.tobytes(), digest_size=16).digest()


def _intervals(again: _Rescored, rounds: int) -> dict[str, list[float]]:
    return {name: list(interval(again.named(name), again.examples, rounds)) for name in again.scores if rounds}


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


def _comparison(first: _Rescored, second: _Rescored, rounds: int) -> dict[str, Any]:
    differences = {
        name: paired(first.named(name), second.named(name), first.examples, rounds)._asdict()
        for name in first.scores
        if rounds
    }
    return {"scores": dict(second.scores), "differences": differences}


def _show(models: Sequence[str], report: dict[str, Any]) -> None:
    click.echo(f"{report['task']}, {report['examples']:,} examples")
    for name, value in report["scores"].items():
        low_high = report["intervals"].get(name)
        click.echo(f"{name} {value:.4f}" + (f"  ({low_high[0]:.4f} to {low_high[1]:.4f})" if low_high else ""))
    for detail in report["details"]:
        table_console().print(_table(detail))
    if report["worst"]:
        click.echo("\nthe surest of the wrong answers:")
    for row in report["worst"]:
        click.echo(f"  {row['where']}  {_short(row['text'])}")
        click.echo(f"      true: {_short(row['truth'])}   said: {_said(row['said'])}")
    if "compared" in report:
        _show_comparison(models, report["compared"])


def _table(detail: Mapping[str, Any]) -> Table:
    """A detail as a table; labels are shown as they are, also those that look like rich's markup."""
    table = Table(title=Text(detail["title"]), title_justify="left")
    for column in detail["columns"]:
        table.add_column(Text(str(column)))
    for row in detail["rows"]:
        table.add_row(*(Text(f"{cell:.4f}" if isinstance(cell, float) else str(cell)) for cell in row))
    return table


def _show_comparison(models: Sequence[str], compared: dict[str, Any]) -> None:
    click.echo(f"\n{models[1]}, and how far {models[0]} is above it:")
    for name, value in compared["scores"].items():
        line = f"{name} {value:.4f}"
        found = compared["differences"].get(name)
        if found:
            line += f"  {found['difference']:+.4f} ({found['low']:+.4f} to {found['high']:+.4f}, p = {found['p']:.3f})"
        click.echo(line)


def _said(prediction: dict[str, Any]) -> str:
    if "words" in prediction and "labels" in prediction:
        tagged = zip(prediction["words"], prediction["labels"], strict=True)
        return _short(" ".join(f"{word}/{tag}" for word, tag in tagged if tag != "O"))
    plain = {k: v for k, v in prediction.items() if isinstance(v, str | int | float)}
    return ", ".join(f"{k} {v:.3f}" if isinstance(v, float) else f"{v}" for k, v in plain.items()) or _short(
        json.dumps(prediction, ensure_ascii=False)
    )


def _short(text: str, most: int = 100) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
