"""Tables under a name that says text: read line by line they give nonsense, so that it is worth a warning."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from heedful.errors import TextWarning

# So many lines are looked at. One alone shows no pattern.
LINES, FEWEST = 20, 2


def noticing_tables(lines: Iterable[str], name: str) -> Iterator[str]:
    """The same lines; warns if the first ones look like the rows of a table."""
    rest = iter(lines)
    first = list(islice(rest, LINES))
    kind = table_kind(first)
    if kind is not None:
        remark = f"{name} looks like a table (.{kind}), but each line is read as a text; name it .{kind} if it is one"
        warnings.warn(remark, TextWarning, stacklevel=2)
    return chain(first, rest)


def table_kind(lines: Sequence[str]) -> str | None:
    """tsv if all lines have equally many tabs, csv if all rows have equally many cells of which some are quoted."""
    written = [line for line in lines if line.strip()]
    if len(written) < FEWEST:
        return None
    if "\t" in written[0] and len({line.count("\t") for line in written}) == 1:
        return "tsv"
    return "csv" if _is_csv(lines) else None


def _is_csv(lines: Sequence[str]) -> bool:
    """Whether the lines are rows of equally many cells, some of them quoted; a quoted cell may go over several."""
    whole = "\n".join(lines)
    if not whole.startswith('"') and ',"' not in whole:
        return False
    rows = [row for row in csv.reader(f"{line}\n" for line in lines) if row]
    if len(lines) == LINES:  # the last row may be cut off
        rows.pop()
    return len(rows) >= FEWEST and len(rows[0]) > 1 and len({len(row) for row in rows}) == 1
