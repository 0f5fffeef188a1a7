"""The toy world as files, in the layouts of the real data sets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from heedful.toy.choices import Choice
from heedful.toy.documents import as_text
from heedful.toy.paragraphs import Question
from heedful.toy.short_pairs import NAME as SHORT
from heedful.toy.short_pairs import short_pairs
from heedful.toy.tags import Tagged
from heedful.toy.task import Task
from heedful.toy.tasks import TASKS, rows, stories


class Size(NamedTuple):
    """How many documents and how many rows of each task."""

    documents: int
    heldout: int
    train: int
    dev: int


SIZES = {
    "small": Size(documents=300, heldout=50, train=300, dev=120),
    "normal": Size(documents=3300, heldout=200, train=2000, dev=500),
    "large": Size(documents=30000, heldout=1000, train=20000, dev=2000),
}


def tsv(table: Sequence[Any]) -> str:
    """Named tuples as tab separated lines under a header, without quoting."""
    lines = [table[0]._fields, *([_cell(value) for value in row] for row in table)]
    return "".join("\t".join(line) + "\n" for line in lines)


def _cell(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def jsonl(table: Sequence[Choice]) -> str:
    """One JSON object a line, with a number as its id."""
    objects = ({"id": f"toy-{i}"} | row._asdict() for i, row in enumerate(table))
    return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in objects)


def squad(table: Sequence[Question]) -> str:
    """SQuAD 1.1: questions under their paragraphs, answers with their start in code points."""
    paragraphs: dict[str, list[dict[str, Any]]] = {}
    for i, row in enumerate(table):
        answer = {"text": row.span.text, "answer_start": row.span.start}
        asked = {"id": f"toy-{i}", "question": row.question, "answers": [answer]}
        paragraphs.setdefault(row.context, []).append(asked)
    listed = [{"context": context, "qas": asked} for context, asked in paragraphs.items()]
    return json.dumps({"version": "1.1", "data": [{"title": "toy", "paragraphs": listed}]}, ensure_ascii=False) + "\n"


def conll(table: Sequence[Tagged]) -> str:
    """A token and its tag a line, an empty line between sentences."""
    blocks = ("".join(f"{token}\t{tag}\n" for token, tag in zip(*row, strict=True)) for row in table)
    return "\n".join(blocks)


_FORMATS: dict[str, Callable[[Any], str]] = {"tsv": tsv, "jsonl": jsonl, "json": squad, "conll": conll}


def files(size: Size, seed: int) -> Iterator[tuple[str, str]]:
    """The name and text of every file of the world, one after the other."""
    for split, name, count in (("train", "documents", size.documents), ("heldout", "heldout", size.heldout)):
        for language, told in stories(split, count, seed).items():
            yield f"{name}.{language}.txt", as_text(told)
    for task in TASKS.values():
        for language in task.languages:
            yield from task_files(task, language, size, seed)
    for split, pairs in short_pairs(seed).items():
        yield f"{SHORT}/{split}.tsv", tsv(pairs)


def task_files(task: Task[Any], language: str, size: Size, seed: int) -> Iterator[tuple[str, str]]:
    """The name and text of the files of one task, train and dev."""
    for split, count in (("train", size.train), ("dev", size.dev)):
        text = _FORMATS[task.format](rows(task.name, language, split, count, seed))
        yield f"{task.name}.{language}/{split}.{task.format}", text


def write(folder: Path, size: Size, seed: int, on_file: Callable[[str], object] = lambda name: None) -> None:
    """Write the whole world into `folder` and tell `on_file` each name."""
    for name, text in files(size, seed):
        on_file(name)
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
