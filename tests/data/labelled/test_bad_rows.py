"""Rows that cannot be used: all of them are found, told with their lines, and left out when asked to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heedful.data.labelled.choice_rows import read_choices
from heedful.data.labelled.conll import read_tagged
from heedful.data.labelled.dataset import Columns, Dataset
from heedful.data.labelled.multi_label_rows import read_multi_label_rows
from heedful.data.labelled.squad import read_questions
from heedful.data.labelled.text_rows import read_text_rows
from heedful.errors import HeedfulError
from heedful.tasks.regress import Regress

QUESTION = '{"question": "q", "context": "c a", "answers": [{"text": "a", "answer_start": 2}]}'
CHOICE = '{"context": "c", "choices": ["a", "b"], "label": 1}'
FILES: dict[str, tuple[Callable[[Path], Dataset[Any]], str, str, list[int]]] = {
    "csv": (
        lambda path: read_text_rows(path, Columns()),
        "a.csv",
        'text,label\n"a,\nb",x\nc,\nd,y\ne, \n',
        [4, 6],
    ),
    "jsonl": (
        lambda path: read_text_rows(path, Columns()),
        "a.jsonl",
        '{"text": "a", "label": "x"}\n{"text": 5, "label": "x"}\n{"text": "b", \n[1]\n{"text": "c", "label": "y"}\n',
        [2, 3, 4],
    ),
    "regress": (
        lambda path: Regress.read(path, Columns()),
        "a.tsv",
        "text\tlabel\na\t1.5\nb\tmany\nc\tnan\nd\t2\n",
        [3, 4],
    ),
    "multilabel": (
        lambda path: read_multi_label_rows(path, Columns(label="x,y")),
        "a.tsv",
        "text\tx\ty\na\t1\t0\nb\t2\t0\nc\t0\t0\n",
        [3],
    ),
    "conll": (read_tagged, "a.conll", "Ann B-PER\nsings O\n\nBob\nruns O\n\nCy X-PER\n\nDi O\n", [4, 7]),
    "tagged objects": (
        read_tagged,
        "a.jsonl",
        '{"words": ["a"], "tags": ["O"]}\n{"words": ["a"]}\n{"words": ["a", "b"], "tags": ["O"]}\n'
        '{"words": ["c"], "tags": ["B-X"]}\n',
        [2, 3],
    ),
    "questions": (read_questions, "a.jsonl", f'{QUESTION}\n{{"question": "q"}}\n{QUESTION}\n', [2]),
    "choices": (read_choices, "a.jsonl", f'{CHOICE}\n{{"context": "c", "choices": ["a"]}}\n{CHOICE}\n', [2]),
}


@pytest.mark.parametrize("kind", FILES)
def test_all_bad_rows_are_found_and_the_others_read(tmp_path: Path, kind: str) -> None:
    read, name, text, lines = FILES[kind]
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    found = read(path)
    assert [str(error.where) for error in found.bad] == [f"{path}:{line}" for line in lines]
    assert len(found.examples) == 2
    with pytest.raises(HeedfulError) as refused:
        found.settled("error")
    assert str(refused.value.where).startswith(f"{path}:{lines[0]}") and "`bad_rows` skip" in str(refused.value.remedy)
    assert len(lines) == 1 or f"{len(lines)} rows cannot be used" in refused.value.what
    kept = found.settled("skip")
    assert kept.examples == found.examples and kept.bad == ()
    assert kept.remarks[-1].count == len(lines) and f"{path}:{lines[0]}" in kept.remarks[-1].places[0]


def test_nobody_is_told_of_a_choice_that_there_is_not(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("text\tlabel\na\tx\nb\t\n")
    with pytest.raises(HeedfulError, match="no label") as refused:
        read_text_rows(path, Columns()).settled()
    assert "bad_rows" not in str(refused.value.remedy)


def test_a_file_of_bad_rows_only_is_refused_in_any_case(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("text\tlabel\na\t\nb\t\n")
    with pytest.raises(HeedfulError, match="2 rows cannot be used"):
        read_text_rows(path, Columns()).settled("skip")


def test_many_ragged_rows_are_refused_or_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,label\n" + "a,x\n" * 5 + "b,c,x\n" * 3)
    found = read_text_rows(path, Columns())
    with pytest.raises(HeedfulError, match="3 of 8 rows do not have the 2 columns"):
        found.settled("error")
    assert len(found.settled("skip").examples) == 5
