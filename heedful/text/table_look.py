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
    """tsv if all lines have equally many tabs, csv if all have equally many cells of which some are quoted."""
    written = [line for line in lines if line.strip()]
    if len(written) < FEWEST:
        return None
    if "\t" in written[0] and len({line.count("\t") for line in written}) == 1:
        return "tsv"
    quoted = [line for line in written if line.startswith('"') or ',"' in line]
    cells = {len(row) for row in csv.reader(written)} if 2 * len(quoted) >= len(written) else set()
    return "csv" if len(cells) == 1 and cells.pop() > 1 else None
