"""Several ways to go on, of which one is right: JSON lines with a list of choices, and tables like SWAG's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count, takewhile
from typing import Any

from heedful.data.labelled.dataset import Choice, Dataset
from heedful.data.tables import Row, Table, read_table
from heedful.errors import HeedfulError
from heedful.text.rows import DataSource

# Where context and question stand; the last two are SWAG's.
BEGINNINGS = (("context", "question"), ("sent1", "sent2"), ("context", "startphrase"))
_LAYOUT = '{"context": "…", "question": "…", "choices": ["…", "…"], "label": 0}'


def read_choices(path: DataSource, labelled: bool = True) -> Dataset[Choice]:
    """The rows of a file; without `labelled`, labels are not looked at and may be missing.

    JSON lines hold a list `choices` (or `endings`) after a `context`, a `question` or both; in SWAG's tables these are
    ending0, ending1, … after sent1 and sent2, or after startphrase. Labels count from 0.
    """
    table = read_table(path, patient=True)
    read = table.oddities.each(_with_endings(table), lambda both: _choice(*both, labelled))
    return table.oddities.dataset(list(read))


def _with_endings(table: Table) -> Iterator[tuple[Row, Any]]:
    columns = list(takewhile(table.columns.__contains__, (f"ending{number}" for number in count())))
    lists = [name for name in ("choices", "endings") if name in table.columns]
    if not columns and not lists:
        raise HeedfulError(
            f"no choices: neither a list of them nor ending0, ending1 … (there are: {', '.join(table.columns)})",
            where=f"{table.path}:1",
            remedy=f"write JSON lines such as {_LAYOUT}, or a table like SWAG's",
        )
    for row in table.rows:
        yield row, row.cells.get(lists[0]) if lists else [row.cells.get(name) for name in columns]


def _choice(row: Row, endings: Any, labelled: bool) -> Choice:
    if not isinstance(endings, list) or len(endings) < 2 or not all(isinstance(ending, str) for ending in endings):
        raise HeedfulError("there are not two choices or more, as texts", where=row.where, remedy=f"write {_LAYOUT}")
    context, question = _beginning(row)
    label = _label(row, len(endings)) if labelled else None
    return Choice(context, question, tuple(endings), label, row.where)


def _beginning(row: Row) -> tuple[str, str]:
    names = next((both for both in BEGINNINGS if any(name in row.cells for name in both)), BEGINNINGS[0])
    context, question = (row.cells.get(name, "") for name in names)
    if not isinstance(context, str) or not isinstance(question, str) or not context + question:
        what = f"there is no text under {names[0]!r} nor {names[1]!r}"
        raise HeedfulError(what, where=row.where, remedy=f"write {_LAYOUT}")
    return context, question


def _label(row: Row, choices: int) -> int:
    given = row.cells.get("label")
    number = int(given) if isinstance(given, str) and re.fullmatch(r"\s*[0-9]+\s*", given) else given
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < choices:
        what = f"the label is {given!r}, not the number of one of the {choices} choices"
        raise HeedfulError(what, where=row.where, remedy=f"write a number from 0 to {choices - 1} under 'label'")
    return number
