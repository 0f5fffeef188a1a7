"""Texts that may have several labels each, or none: separated in one column, or a column of 0 and 1 for each label.

    text           label               text           news  sport
    a long match   news; sport         a long match   1     1
    nothing                            nothing        0     0

In JSON lines the label may also be a list. Several columns are named with commas between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from heedful.data.labelled.dataset import PLACES, Columns, Dataset, MultiLabelRow, Remark
from heedful.data.labelled.text_rows import LABELS, find_columns, text_table
from heedful.data.tables import Row, Table, as_json, column_named, no_column, text_under
from heedful.errors import HeedfulError
from heedful.text.rows import DataSource

# Tried in this order where nobody says which it is; labels may hold spaces, so that a space has to be named.
SEPARATORS = (";", "|", ",")
USUAL = ("labels", *LABELS, "tags", "topics", "categories")
_SWITCH = {"0": False, "1": True, "false": False, "true": True, "0.0": False, "1.0": True}

# A cell of labels as it stands in the file, or those of a list or of several columns.
Given = str | tuple[str, ...]


def read_multi_label_rows(path: DataSource, columns: Columns, labelled: bool = True) -> Dataset[MultiLabelRow]:
    """The rows of a table or of JSON lines; without `labelled`, labels are not looked at."""
    table = text_table(path, columns, labelled, patient=True)
    found = find_columns(table, columns, labelled=False)
    names = _label_columns(table, columns.label) if labelled else []
    if shared := {found.text, found.pair} & set(names):
        what = f"the column {shared.pop()!r} cannot be both a text and a label"
        raise HeedfulError(what, where=f"{table.path}:1", remedy="name another with `text`, `pair` or `label`")
    rows = list(table.oddities.each(table.rows, lambda row: (_text(row, found), _given(row, names) if names else None)))
    separator = columns.separator or _separator(given for _, given in rows)
    examples = [one if given is None else replace(one, labels=_labels(given, separator)) for one, given in rows]
    return replace(
        table.oddities.dataset(examples),
        remarks=(*table.oddities.remarks, *_told(examples, [given for _, given in rows], separator)),
    )


def _text(row: Row, columns: Columns) -> MultiLabelRow:
    assert columns.text is not None
    pair = None if columns.pair is None else text_under(columns.pair, row)
    return MultiLabelRow(text_under(columns.text, row), pair, where=row.where)


def _label_columns(table: Table, asked: str | None) -> list[str]:
    lower = [column.lower() for column in table.columns]
    if asked is None:
        name = next((name for name in USUAL if name in lower), None)
        if name is None:
            what = "no column is known to hold the labels; several may be named with commas, as news,sport"
            raise no_column(what, table, "label")
        return [column_named(name, table, "label")]
    if asked.lower() in lower:
        return [column_named(asked, table, "label")]
    return [column_named(name.strip(), table, "label") for name in asked.split(",")]


def _given(row: Row, names: Sequence[str]) -> Given:
    if len(names) > 1:
        return tuple(name for name in names if _is_on(row, name))
    value = row.cells.get(names[0])
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list) and all(isinstance(one, str | int) for one in value):
        return tuple(str(one).strip() for one in value)
    if isinstance(value, int | float):
        return as_json(value)
    what = f"no labels under {names[0]!r}, but {as_json(value)}"
    raise HeedfulError(what, where=row.where, remedy="write labels there, a list of them, or nothing")


def _is_on(row: Row, name: str) -> bool:
    value = row.cells.get(name)
    text = (value if isinstance(value, str) else as_json(value)).strip().lower()
    if text not in _SWITCH:
        what = f"{value!r} under {name!r} is neither 0 nor 1"
        raise HeedfulError(what, where=row.where, remedy="of several columns each says 1 or 0: does the label apply?")
    return _SWITCH[text]


def _separator(cells: Iterator[Given | None]) -> str:
    """What parts the labels of a cell: the first of the usual ones that occurs, nothing if none does."""
    written = {character for cell in cells if isinstance(cell, str) for character in cell}
    return next((one for one in SEPARATORS if one in written), "")


def _labels(given: Given, separator: str) -> tuple[str, ...]:
    """Each label once, in their order."""
    parts = given if isinstance(given, tuple) else given.split(separator) if separator else (given,)
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))


def _told(examples: Sequence[MultiLabelRow], rows: Sequence[Given | None], separator: str) -> Iterator[Remark]:
    """How labels were told apart, which a reader may not have meant, and how many rows have none."""
    pairs = list(zip(examples, rows, strict=True))
    cut = [one.where for one, given in pairs if isinstance(given, str) and len(one.labels or ()) > 1]
    bare = [one.where for one in examples if one.labels == ()]
    for what, places in (
        (f"rows with several labels, separated by {separator!r}", cut),
        ("rows without a label", bare),
    ):
        if places:
            yield Remark(what, len(places), tuple(islice(places, PLACES)))
