"""Predictions for a file or a text, written as JSON lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import click

from heedful.atomic import atomic_file
from heedful.cli.progress import progress_bar
from heedful.data.labelled import Columns
from heedful.inference.load import predictor
from heedful.inference.predictor import Predictor
from heedful.tasks.task import Prediction
from heedful.text.documents import read_lines


def predict_text(run: str, text: str, pair: str | None, output: str | None) -> None:
    """The answer for one text or pair."""
    answers = predictor(run).predict([text if pair is None else (text, pair)])
    with _sink(output) as write:
        _write(write, answers)


def predict_file(run: str, path: str, columns: Columns, output: str | None) -> None:
    """An answer for each input of a file, written as they come."""
    one = predictor(run)
    examples = _examples(one, path, columns)
    done = 0
    with _sink(output) as write, progress_bar("predicting", len(examples), "examples") as advance:
        for answers in one.stream(examples):
            _write(write, answers)
            done += len(answers)
            advance(done, done)


def _examples(one: Predictor, path: str, columns: Columns) -> Sequence[Any]:
    if path == "-" or path.removesuffix(".gz").endswith(".txt"):
        return [one.task.example(line) for line in read_lines(path)]
    data = one.read(path, columns, labelled=False)
    for remark in data.remarks:
        click.echo(str(remark), err=True)
    return data.examples


@contextmanager
def _sink(output: str | None) -> Iterator[IO[str]]:
    if output is None:
        yield sys.stdout
    else:
        with atomic_file(output) as file:
            yield file


def _write(write: IO[str], answers: Sequence[Prediction]) -> None:
    for answer in answers:
        write.write(json.dumps(answer, ensure_ascii=False) + "\n")
