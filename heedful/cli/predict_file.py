"""Predictions for a file or a text, written as JSON lines."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import click

from heedful.cli.progress import progress_bar
from heedful.cli.sink import sink
from heedful.data.labelled import Columns, Question
from heedful.errors import HeedfulError
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
    answers = one.predict([text if pair is None else (text, pair)])
    with sink(output) as write:
        write.writelines(map(_line, answers))
    tell_cut(sum("cut" in answer for answer in answers), len(answers))


def predict_file(one: Predictor, path: str, columns: Columns, output: str | None) -> None:
    """An answer for each input of a file, written as they come."""
    examples = _examples(one, path, columns)
    done = cut = empty = 0
    with sink(output) as write, progress_bar("predicting", len(examples), "examples") as advance:
        for answers in one.stream(examples):
            asked = examples[done : done + len(answers)]
            named = zip(asked, answers, strict=True)
            write.writelines(_line({**_name(example, output), **answer}) for example, answer in named)
            done += len(answers)
            cut += sum("cut" in answer for answer in answers)
            empty += sum("empty" in answer for answer in answers)
            advance(done, done)
    tell_cut(cut, done)
    if empty:
        click.echo(f"{empty:,} of {done:,} inputs are empty, and their answers are marked so", err=True)


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


def _name(example: Any, output: str | None) -> Prediction:
    """What ties an answer to its input: a question's id, and in a file that is read later the place of any other."""
    if isinstance(example, Question) and example.id:
        return {"id": example.id}
    place = getattr(example, "where", "")  # the examples of another's task may know none
    return {"where": place} if output is not None and place else {}


def _line(answer: Prediction) -> str:
    return json.dumps(answer, ensure_ascii=False) + "\n"
