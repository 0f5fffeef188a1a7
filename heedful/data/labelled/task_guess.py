"""What a file of labelled data is good for, by its name and its first lines."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import islice
from pathlib import Path

from heedful.data.tables import ending, holds_objects
from heedful.text.documents import parse_json, read_lines

LOOK_AT = 100  # lines
_CONLL = (".conll", ".bio", ".iob", ".iob2")
_TAGGED_WORD = re.compile(r"\S.*[ \t](O|[BI]-\S+)")


def guess_task(path: Path) -> str:
    """tag, answer, choose, or classify for whatever is none of these."""
    first = list(islice((line for line in read_lines(path) if line.strip()), LOOK_AT))
    if not first:
        return "classify"
    if holds_objects(path):
        return _by_object(first[0], path)
    tagged = sum(bool(_TAGGED_WORD.fullmatch(line.rstrip())) for line in first)
    if ending(path) in _CONLL or tagged > len(first) / 2:
        return "tag"
    return _by_columns(re.split("[\t,]", first[0]))


def _by_object(line: str, path: Path) -> str:
    # A SQuAD file is one object, on one line or on many.
    if '"paragraphs"' in line or not line.rstrip().endswith("}"):
        return "answer"
    row = parse_json(line, path)
    return _by_columns(row) if isinstance(row, dict) else "classify"


def _by_columns(columns: Collection[str]) -> str:
    if {"words", "tokens"} & set(columns):
        return "tag"
    if {"choices", "endings", "ending0"} & set(columns):
        return "choose"
    return "answer" if {"question", "context"} <= set(columns) else "classify"
