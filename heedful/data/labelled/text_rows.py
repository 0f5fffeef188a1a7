"""Texts and pairs of texts with a label: tables whose header tells what is what, and the files of GLUE as released."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from heedful.data.labelled.dataset import Columns, Dataset, TextRow
from heedful.data.oddities import Oddities
from heedful.data.tables import Row, Table, as_json, column_named, no_column, read_table, text_under
from heedful.errors import HeedfulError
from heedful.text.rows import DataSource

# The usual names, in small letters. Of several the first that a header has is taken, and a pair before a single text.
PAIRS = (
    ("sentence1", "sentence2"),
    ("question1", "question2"),
    ("question", "sentence"),
    ("premise", "hypothesis"),
    ("#1 string", "#2 string"),
    ("sentence_a", "sentence_b"),
    ("text_a", "text_b"),
    ("text1", "text2"),
    ("text", "pair"),
)
TEXTS = (
    *("sentence", "text", "review", "comment", "content", "question", "query", "premise", "body", "title"),
    *("sentence1", "question1", "#1 string", "sentence_a", "text_a", "text1"),
)
LABELS = (
    *("label", "gold_label", "score", "quality", "is_duplicate", "similarity", "stars", "rating", "sentiment"),
    *("class", "category", "target", "entailment_judgment"),
)

# CoLA has no header: source, label, what the source's author thought of it (*, ?, ??), sentence.
COLA = ("source", "label", "star", "sentence")
# What MNLI and CMNLI write where the annotators did not agree.
NO_CONSENSUS = "-"


def read_text_rows(path: DataSource, columns: Columns, labelled: bool = True) -> Dataset[TextRow]:
    """The rows of a table or of JSON lines; without `labelled`, labels are not looked at.

    An unlabelled file without tabs and without a header we know is a plain one with a text in each line.
    """
    table = text_table(path, columns, labelled, patient=True)
    found = find_columns(table, columns, labelled)
    rows = list(table.oddities.each(table.rows, lambda row: _text_row(row, found)))
    if labelled:
        rows = _with_consensus(rows, table.oddities)
    if not rows and not table.oddities.bad:
        raise HeedfulError("no row has a label", where=path, remedy="give labelled rows")
    return table.oddities.dataset(rows)


def text_table(path: DataSource, columns: Columns, labelled: bool, patient: bool = False) -> Table:
    """The table that rows are read from, with all its columns; a plain file has one, `text`.

    Columns that are asked for by number, from 1 on, are those of a table without a header.
    """
    return read_table(path, partial(_unnamed, asked=columns, plain=not labelled and columns.text is None), patient)


def find_columns(table: Table, asked: Columns, labelled: bool = True) -> Columns:
    """The columns to take by the names they have: those asked for, else the usual ones.

    Whoever names the text alone gets no pair.
    """
    text, pair = asked.text, asked.pair
    if text is None and pair is None:
        text, pair = next((both for both in PAIRS if all(_has(table, name) for name in both)), (None, None))
    if text is None:
        text = _first_of([name for name in TEXTS if name != pair], table, "text")
    label = (asked.label or _first_of(LABELS, table, "label")) if labelled else None
    found = Columns(
        column_named(text, table, "text"),
        None if pair is None else column_named(pair, table, "pair"),
        None if label is None else column_named(label, table, "label"),
    )
    if found.label in (found.text, found.pair) and found.label is not None:
        what = f"the column {found.label!r} cannot be both a text and the label"
        raise HeedfulError(what, where=f"{table.path}:1", remedy="name another with `text`, `pair` or `label`")
    return found


def _unnamed(cells: Sequence[str], asked: Columns, plain: bool) -> Sequence[str] | None:
    named = [name for name in (asked.text, asked.pair, asked.label) if name is not None]
    if named and all(name.isdecimal() and name not in cells for name in named):
        return [str(number) for number in range(1, len(cells) + 1)]
    if len(cells) == len(COLA) and cells[1] in ("0", "1") and not cells[2].strip("*?#%"):
        return COLA
    if plain and len(cells) == 1 and cells[0].strip().lower() not in TEXTS:
        return ("text",)
    return None


def _has(table: Table, name: str) -> bool:
    return name in map(str.lower, table.columns)


def _first_of(names: Sequence[str], table: Table, role: str) -> str:
    for name in names:
        if _has(table, name):
            return name
    raise no_column(f"no column is known to hold the {role}", table, role)


def _text_row(row: Row, columns: Columns) -> TextRow:
    assert columns.text is not None
    return TextRow(
        text_under(columns.text, row),
        None if columns.pair is None else text_under(columns.pair, row),
        None if columns.label is None else _label(row, columns.label),
        row.where,
    )


def _label(row: Row, column: str) -> str:
    value = row.cells.get(column)
    label = value.strip() if isinstance(value, str) else "" if value is None else as_json(value)
    if not label or isinstance(value, list | dict):
        what = f"no label under {column!r}" + (f", but {label}" if label else "")
        raise HeedfulError(what, where=row.where, remedy="write a label or a number there, or leave the row out")
    return label


def _with_consensus(rows: list[TextRow], oddities: Oddities) -> list[TextRow]:
    if any(row.label == "+" for row in rows):
        return rows  # then minus is a label as good as plus
    for row in rows:
        if row.label == NO_CONSENSUS:
            oddities.note(f"rows with the label {NO_CONSENSUS!r} (no consensus), left out", row.where)
    return [row for row in rows if row.label != NO_CONSENSUS]
