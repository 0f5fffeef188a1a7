"""Texts out of any file: a text a line, a column of a table, or a field of JSON objects.

Of a table every row is read: one with another number of columns is an error and not left out, because whoever reads
texts wants one result for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from heedful.addresses import Address, place
from heedful.data.labelled.dataset import Columns
from heedful.data.labelled.text_rows import TEXTS, find_columns
from heedful.data.tables import RAGGED, Table, column_named, ending, no_column, read_table, text_under
from heedful.errors import HeedfulError
from heedful.text.documents import count_texts as count_lines
from heedful.text.documents import read_documents as read_plain_documents
from heedful.text.documents import read_texts as read_plain_texts

FIELD = "text"  # of JSON objects, unless another is named


def is_delimited(path: str | Path) -> bool:
    """Whether the name says that it is a table: .tsv or .csv, perhaps with .gz."""
    return ending(Path(path)) in (".tsv", ".csv")


def read_texts(path: str | Path, column: str | None = None) -> Iterator[str]:
    """One text for each row, object or line, blank ones included; `-` is standard input, a text a line.

    `column` names the column or the field; else the column is found by the header, and the field is `text`.
    """
    return table_texts(place(path), column) if is_delimited(path) else read_plain_texts(path, column or FIELD)


def count_texts(path: str | Path) -> int | None:
    """How many texts `read_texts` will give; None of what can be read only once."""
    if not Path(path).is_file():
        return None
    return sum(1 for _ in read_table(Path(path)).rows) if is_delimited(path) else count_lines(path)


def read_documents(path: str | Path, column: str | None = None) -> Iterator[list[str]]:
    """The documents of a file, each as its lines without the blank ones; a row of a table is one, as an object is."""
    return table_documents(place(path), column) if is_delimited(path) else read_plain_documents(path, column or FIELD)


def table_texts(path: Path | Address, column: str | None) -> Iterator[str]:
    """The texts of a table, after it was gone through once to see that no row is broken."""
    refuse_ragged(path)
    table = read_table(path)
    name = text_column(table, column)
    return (text_under(name, row) for row in table.rows)


def table_documents(path: Path | Address, column: str | None) -> Iterator[list[str]]:
    """The rows of a table that hold text, each as its lines."""
    for text in table_texts(path, column):
        document = [line for line in text.splitlines() if line.strip()]
        if document:
            yield document


def refuse_ragged(path: Path | Address) -> None:
    """Go through a table once, before any work is done on it."""
    table = read_table(path)
    for _ in table.rows:
        pass
    if table.oddities.count(RAGGED):
        what = f"{table.oddities.count(RAGGED):,} rows have another number of columns than the header"
        raise HeedfulError(what, where=table.oddities.first(RAGGED), remedy="fix them: each is to get a result")


def text_column(table: Table, asked: str | None) -> str:
    """The column of the texts: the one asked for, or found by the header."""
    if asked is not None:
        return column_named(asked, table, "text", numbered=False)
    if not set(TEXTS) & set(map(str.lower, table.columns)):
        raise no_column("no column is known to hold the text", table, "text", numbered=False)
    found = find_columns(table, Columns(), labelled=False).text
    assert found is not None
    return found
