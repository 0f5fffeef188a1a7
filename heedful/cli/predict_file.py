"""Predictions for a file or a text, printed as JSON lines, or written as such or as a table."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click

from heedful.cli.progress import progress_bar
from heedful.cli.sink import sink
from heedful.data.labelled.dataset import Columns, Question
from heedful.errors import HeedfulError
from heedful.inference.answer_table import Cells, answer_format, given_cells, write_answer_table
from heedful.inference.predictor import Predictor
from heedful.tasks.task import Prediction
from heedful.text.documents import text_lines

# What nobody writes as a text, but as the name of a file.
_FILE_NAME = re.compile(r"\S+\.(tsv|csv|jsonl?|conll|txt)(\.gz)?", re.IGNORECASE)


def refuse_file_name(text: str) -> None:
    """Refuse to take for a text what is the name of a file that is not there."""
    if _FILE_NAME.fullmatch(text):
        remedy = "check the name; a text that looks like one may come from standard input (-)"
        raise HeedfulError("there is no such file", where=text, remedy=remedy)


def predict_text(one: Predictor, text: str, pair: str | None, output: str | None) -> None:
    """The answer for one text or pair."""
    example = one.task.example(text if pair is None else (text, pair))
    _answer(one, [example], lambda: iter([getattr(example, "cells", {})]), output)


def predict_file(one: Predictor, path: str, columns: Columns, output: str | None) -> None:
    """An answer for each input of a file, in order."""
    examples = _examples(one, path, columns)
    resolved = columns if path == "-" else one.columns(path, columns, labelled=False)
    _answer(one, examples, lambda: given_cells(examples, path, resolved), output)


def _answer(one: Predictor, examples: Sequence[Any], given: Callable[[], Iterable[Cells]], output: str | None) -> None:
    """Write the answers, and tell what was cut or empty; `given` is what a table shows of the inputs."""
    table = output is not None and answer_format(output) != ".jsonl"
    cells = given() if table else ()  # what is wrong with it is found out before the work
    answers: list[Prediction] = []
    with sink(output) as file, progress_bar("predicting", len(examples), "examples") as advance:
        for chunk in one.stream(examples):
            asked = examples[len(answers) : len(answers) + len(chunk)]
            named = [{**_name(example, output, table), **answer} for example, answer in zip(asked, chunk, strict=True)]
            if not table:
                file.writelines(map(_line, named))
            answers += named
            advance(len(answers), len(answers))
        if table and output is not None:
            write_answer_table(file, answer_format(output), cells, answers)
    tell_cut(sum("cut" in answer for answer in answers), len(answers))
    empty = sum("empty" in answer for answer in answers)
    if empty:
        click.echo(f"{empty:,} of {len(answers):,} inputs are empty, and their answers are marked so", err=True)


def tell_cut(cut: int, examples: int) -> None:
    """Say on standard error how many inputs the model has not seen whole."""
    if cut:
        click.echo(f"{cut:,} of {examples:,} inputs are longer than the model reads and were cut", err=True)


def _examples(one: Predictor, path: str, columns: Columns) -> Sequence[Any]:
    if path == "-":
        return [one.task.example(line) for line in text_lines(path)]
    data = one.read(path, columns, labelled=False)
    for remark in data.remarks:
        click.echo(str(remark), err=True)
    return data.examples


def _name(example: Any, output: str | None, table: bool) -> Prediction:
    """What ties an answer to its input: a question's id, and in a file that is read later the place of any other.

    A table shows the input itself.
    """
    if isinstance(example, Question) and example.id:
        return {"id": example.id}
    place = getattr(example, "where", "")  # the examples of another's task may know none
    return {"where": place} if output is not None and place and not table else {}


def _line(answer: Prediction) -> str:
    return json.dumps(answer, ensure_ascii=False) + "\n"
