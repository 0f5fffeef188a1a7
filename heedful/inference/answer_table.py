"""Answers as a table: all columns of the input, and the answers' own after them.

What is no table gives its text (or question) as the first column. An added column whose name the input has already is
called `predicted_…`. Probabilities by label get a column each, lists of words are joined by spaces, and whatever else
is no plain value is written as JSON.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from heedful.data.labelled.dataset import Choice, Columns, SentencePair, TextRow
from heedful.data.labelled.text_rows import text_table
from heedful.data.tables import ending, holds_objects
from heedful.errors import HeedfulError
from heedful.tasks.task import Prediction

FORMATS = (".jsonl", ".csv", ".tsv")

Cells = Mapping[str, Any]


def answer_format(output: str) -> str:
    """How a file of answers is written, by the end of its name."""
    found = Path(output).suffix.lower()
    if found not in FORMATS:
        remedy = "end it in .jsonl, or in .csv or .tsv for a table with all columns of the input"
        raise HeedfulError("the output's name does not tell its format", where=output, remedy=remedy)
    return found


def given_cells(examples: Sequence[Any], path: str, columns: Columns) -> Iterator[Cells]:
    """What each example looked like in its file: all columns of a table, the text of anything else."""
    rows = bool(examples) and isinstance(examples[0], TextRow | Choice | SentencePair)
    if not (rows or ending(Path(path)) == ".csv") or path == "-" or holds_objects(Path(path)):
        return (getattr(example, "cells", {}) for example in examples)
    table = text_table(Path(path), columns, labelled=False)
    twice = [name for name in table.columns if table.columns.count(name) > 1]
    if twice:
        remedy = "give each column a name of its own, or write the answers to .jsonl"
        raise HeedfulError(f"several columns are called {twice[0]!r}", where=f"{path}:1", remedy=remedy)
    return (row.cells for row in table.rows)


def write_answer_table(file: IO[str], kind: str, given: Iterable[Cells], answers: Sequence[Prediction]) -> None:
    """Write a header, and a row for each answer after the cells it was given for."""
    inputs, flat = list(given), [_flat(answer) for answer in answers]
    own = list(dict.fromkeys(name for cells in inputs for name in cells))
    added = {name: _free(name, own) for name in dict.fromkeys(name for cells in flat for name in cells)}
    answered = ({added[name]: value for name, value in answer.items()} for answer in flat)
    rows = [{**cells, **answer} for cells, answer in zip(inputs, answered, strict=True)]
    write_table(file, kind, [*own, *added.values()], rows)


def write_table(file: IO[str], kind: str, columns: Sequence[str], rows: Iterable[Cells]) -> None:
    """Write a header, and what each row has under its columns."""
    _write_row(file, kind, columns)
    for row in rows:
        _write_row(file, kind, [_text(row.get(name, "")) for name in columns])


def _write_row(file: IO[str], kind: str, cells: Sequence[str]) -> None:
    if kind == ".csv":
        csv.writer(file, lineterminator="\n").writerow(cells)
    else:  # nothing is quoted there, so that no cell may hold what parts them
        file.write("\t".join(" ".join(cell.replace("\t", " ").splitlines()) for cell in cells) + "\n")


def _flat(answer: Prediction) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in answer.items():
        if name == "probabilities" and isinstance(value, dict):
            flat |= {f"probability_{label}": share for label, share in value.items()}
        else:
            flat[name] = value
    return flat


def _free(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name = f"predicted_{name}"
    return name


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, list) and value and all(isinstance(one, str) and " " not in one for one in value):
        return " ".join(value)
    return json.dumps(value, ensure_ascii=False)
