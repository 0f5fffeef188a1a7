"""Tables of labelled data, read row by row: tab separated without quoting, CSV, or JSON lines, each perhaps in .gz."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from heedful.addresses import Address
from heedful.data.oddities import Oddities
from heedful.errors import HeedfulError
from heedful.text.documents import read_lines, read_objects
from heedful.text.rows import DataSource, Rows

RAGGED = "rows with another number of columns, left out"
BLANK = "blank lines, passed over"
# More ragged rows than both of these, and the file is not what it is taken for.
RAGGED_SHARE, RAGGED_COUNT = 0.05, 2
SHOWN = 60  # characters of a column's name, which without a header is a text
# Characters of a CSV cell: as many as the reader can count. By itself it refuses texts of more than 131,072.
LONGEST_CELL = 2**31 - 1


class Row(NamedTuple):
    """The cells of a row by column, and where it stands as file:line."""

    where: str
    cells: Mapping[str, Any]  # text, or whatever a JSON object holds


class Record(NamedTuple):
    """The cells of a row as they come, none for a blank line, and the line it begins in."""

    line: int
    cells: list[str]


@dataclass(frozen=True)
class Table:
    """A table whose rows can be gone through once; only then the oddities, bad rows among them, are complete."""

    path: DataSource | Address
    columns: tuple[str, ...]
    rows: Iterator[Row]
    oddities: Oddities


# The names of the columns, if the cells of the first line are those of a row and not names.
Unnamed = Callable[[Sequence[str]], Sequence[str] | None]


def read_table(path: DataSource | Address, unnamed: Unnamed = lambda cells: None, patient: bool = False) -> Table:
    """Open a table of the format that its name tells; what is neither .csv nor .jsonl nor .json is tab separated.

    A row that cannot be used is an error, or with `patient` among the oddities.
    """
    oddities = Oddities(path, patient)
    if isinstance(path, Rows) or holds_objects(path):
        return _object_table(path, oddities)
    records = _comma_records(path) if ending(path) == ".csv" else _tab_records(path)
    top: list[Record] = []  # blank lines, and the first that is not
    while not top or not top[-1].cells:
        record = next(records, None)
        if record is None:
            raise _empty(path)
        top.append(record)
    names = unnamed(top[-1].cells)
    columns = tuple(names or (cell.strip() for cell in top[-1].cells))
    return Table(path, columns, _rows(path, columns, chain(top if names else [], records), oddities), oddities)


def holds_objects(path: DataSource | Address) -> bool:
    """Whether the name says that each line is a JSON object."""
    return ending(path) in (".jsonl", ".json")


def is_table(path: DataSource | Address) -> bool:
    """Whether the name says that it is a table or holds JSON objects."""
    return ending(path) in (".tsv", ".csv") or holds_objects(path)


def ending(path: DataSource | Address) -> str:
    """How the name ends when .gz is taken off, in small letters; rows in memory are as JSON lines."""
    if isinstance(path, Rows):
        return ".jsonl"
    return Path(str(path).removesuffix(".gz")).suffix.lower()


def column_named(name: str, table: Table, option: str, numbered: bool = True) -> str:
    """The one column of that name, as it is written, else whatever its letters' size; `option` is what names it."""
    found = [column for column in table.columns if column == name]
    found = found or [column for column in table.columns if column.lower() == name.lower()]
    if not found:
        raise no_column(f"there is no column {name!r}", table, option, numbered)
    if len(found) > 1:
        remedy = "give each column a name of its own"
        raise HeedfulError(f"{len(found)} columns are called {name!r}", where=f"{table.path}:1", remedy=remedy)
    return found[0]


def no_column(what: str, table: Table, option: str, numbered: bool = True) -> HeedfulError:
    """The error that a column is missing, with those that there are; `numbered` ones may be asked for by number."""
    remedy = f"say which column it is with `{option}`"
    if not isinstance(table.path, Rows):
        remedy += "; the first line has to name the columns"
    if numbered and option in ("text", "pair", "label") and not holds_objects(table.path):
        remedy = (
            "if the first line names the columns, say which is which with `text`, `pair` and `label`; if it is a row "
            "already, number them, as `text` 1 `label` 2"
        )
    if len(table.columns) == 1 and ";" in table.columns[0]:
        remedy = "separate the columns by tabs (.tsv) or commas (.csv), not by semicolons"
    shown = ", ".join(name if len(name) <= SHOWN else f"{name[:SHOWN]} …" for name in table.columns)
    return HeedfulError(f"{what} (there are: {shown})", where=f"{table.path}:1", remedy=remedy)


def text_under(column: str, row: Row) -> str:
    """The text of a cell; anything else that a JSON object may hold there is refused."""
    text = row.cells.get(column)
    if not isinstance(text, str):
        what = f"no text under {column!r}, but {as_json(text)}"
        raise HeedfulError(what, where=row.where, remedy="write a text there, or leave the row out")
    return text


def as_json(value: Any) -> str:
    """A cell as JSON has it, for error messages."""
    return json.dumps(value, ensure_ascii=False)


def _tab_records(path: Path | Address) -> Iterator[Record]:
    for number, line in enumerate(read_lines(path), start=1):
        yield Record(number, line.split("\t") if line.strip(" ") else [])


def _comma_records(path: Path | Address) -> Iterator[Record]:
    csv.field_size_limit(LONGEST_CELL)
    # The reader wants the line ends back: some stand inside quotes.
    reader = csv.reader((line + "\n" for line in read_lines(path)), strict=True)
    line = 1
    try:
        for cells in reader:
            yield Record(line, cells)
            line = reader.line_num + 1
    except csv.Error as error:
        remedy = "close the quotes and double those inside; tab separated texts without quoting belong in .tsv"
        raise HeedfulError(f"not valid CSV: {error}", where=f"{path}:{line}", remedy=remedy) from None


def _rows(
    path: Path | Address, columns: tuple[str, ...], records: Iterator[Record], oddities: Oddities
) -> Iterator[Row]:
    total = 0
    for record in records:
        where = f"{path}:{record.line}"
        cells = record.cells or ([""] if len(columns) == 1 else [])  # a blank line is an empty cell, but no row of many
        if not cells:
            oddities.note(BLANK, where)
            continue
        total += 1
        if len(cells) == len(columns):
            yield Row(where, dict(zip(columns, cells, strict=True)))
        else:
            oddities.note(RAGGED, where)
    if not total:
        raise HeedfulError("there is a header but no row", where=path, remedy="give a file with rows")
    _check_ragged(total, columns, oddities, "comma" if ending(path) == ".csv" else "tab")


def _check_ragged(total: int, columns: tuple[str, ...], oddities: Oddities, separator: str) -> None:
    ragged = oddities.count(RAGGED)
    if ragged == total or ragged > max(RAGGED_COUNT, RAGGED_SHARE * total):
        error = HeedfulError(
            f"{ragged:,} of {total:,} rows do not have the {len(columns)} columns of the header",
            where=oddities.first(RAGGED),
            remedy=f"is this really {separator} separated? .tsv: tabs, no quoting; .csv: commas and quotes; or .jsonl",
        )
        if ragged == total:
            raise error
        oddities.refuse(error)


def _object_table(path: DataSource | Address, oddities: Oddities) -> Table:
    objects = read_objects(path, oddities.refuse)
    first = next(objects, None)
    if first is None:
        raise oddities.bad[0] if oddities.bad else _empty(path)
    rows = (Row(where, cells) for where, cells in chain([first], objects))
    return Table(path, tuple(first[1]), rows, oddities)


def _empty(path: DataSource | Address) -> HeedfulError:
    return HeedfulError("this file is empty", where=path, remedy="give a file with rows")
