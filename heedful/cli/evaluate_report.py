"""What `heedful evaluate` prints."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from heedful.cli.console import table_console
from heedful.cli.precision import tell_int8
from heedful.cli.predict_file import tell_cut
from heedful.cli.progress import progress_bar
from heedful.errors import counted
from heedful.inference.evaluation import Comparison, EvaluationReport, EvaluationSettings, evaluate
from heedful.inference.load import predictor
from heedful.inference.predictor import Predictor
from heedful.inference.wrong_answers import write_errors
from heedful.json_files import finite
from heedful.tasks.task import Detail, Prediction, Task


def loaded(models: Sequence[str], force: bool, precision: str, engine: str) -> list[Predictor]:
    """The models to score; what int8 or another engine costs each of them is told."""
    found = [predictor(model, force=force, precision=precision, engine=engine) for model in models]
    for one in found:
        tell_int8(one.int8 or one.exported)
    return found


def evaluate_and_show(
    models: Sequence[str],
    predictors: Sequence[Predictor],
    path: str,
    settings: EvaluationSettings,
    as_json: bool,
    errors: str | None,
) -> None:
    """Score one or two models on a file and print what came out; the wrong answers of the first go into `errors`."""
    report = evaluate(predictors, path, settings, progress_bar)
    for remark in report.remarks:
        click.echo(str(remark), err=True)
    tell_cut(report.cut, report.examples)
    if errors is not None:
        write_errors(report.wrong, errors, overwrite=True)  # that it may be replaced was asked before the work
        click.echo(f"{len(report.wrong):,} wrong answers are in {errors}", err=True)
    if as_json:
        click.echo(json.dumps(finite(report.as_json()), ensure_ascii=False, allow_nan=False))
    else:
        _show(models, report, predictors[0].task)


def _show(models: Sequence[str], report: EvaluationReport, task: Task[Any]) -> None:
    click.echo(f"{report.task}, {counted(report.examples, 'example')}")
    for name, value in report.scores.items():
        low_high = report.intervals.get(name)
        click.echo(f"{name} {value:.4f}" + (f"  ({low_high[0]:.4f} to {low_high[1]:.4f})" if low_high else ""))
    for detail in report.details:
        table_console().print(_table(detail))
    if report.worst:
        click.echo("\nthe surest of the wrong answers:")
    for row in report.worst:
        click.echo(f"  {row['where']}  {_short(row['text'])}")
        click.echo(f"      true: {_short(row['truth'])}   said: {_said(task, row['said'])}")
    if report.compared is not None:
        _show_comparison(models, report.compared)


def _table(detail: Detail) -> Table:
    """A detail as a table; labels are shown as they are, also those that look like rich's markup."""
    table = Table(title=Text(detail.title), title_justify="left")
    for column in detail.columns:
        table.add_column(Text(str(column)))
    for row in detail.rows:
        table.add_row(*(Text(f"{cell:.4f}" if isinstance(cell, float) else str(cell)) for cell in row))
    return table


def _show_comparison(models: Sequence[str], compared: Comparison) -> None:
    click.echo(f"\n{models[1]}, and how far {models[0]} is above it:")
    for name, value in compared.scores.items():
        line = f"{name} {value:.4f}"
        found = compared.differences.get(name)
        if found:
            line += f"  {found['difference']:+.4f} ({found['low']:+.4f} to {found['high']:+.4f}, p = {found['p']:.3f})"
        click.echo(line)


def _said(task: Task[Any], prediction: Prediction) -> str:
    sure = prediction.get("probability")
    return _short(task.said(prediction)) + (f", probability {sure:.3f}" if isinstance(sure, float) else "")


def _short(text: str, most: int = 100) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
