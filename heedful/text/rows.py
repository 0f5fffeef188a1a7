"""Rows in memory, which stand in the place of a file of JSON lines.

Rows([{"text": "a fine day", "label": "good"}, …])     mappings, by the names a file would have
Rows([("a fine day", "good"), …])                      tuples, whose places a task knows the names of
Rows(["a fine day", …])                               texts, for a task that learns from texts alone
Rows(frame)                                            a data frame, or anything else that gives mappings
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from heedful.errors import HeedfulError

NAME = "rows in memory"


def raised(error: HeedfulError) -> None:
    """Raise an error: what is done about it where nothing else is said."""
    raise error


class Rows:
    """Rows that were handed over, each checked when it is read; as a text it tells which rows they were."""

    def __init__(self, given: Any) -> None:
        # A data frame goes over its columns unless it is asked for rows.
        records = given.to_dict("records") if hasattr(given, "columns") and hasattr(given, "to_dict") else given
        if isinstance(records, str | bytes | Mapping) or not isinstance(records, Iterable):
            what = f"data of type {type(given).__name__} is not understood"
            raise HeedfulError(what, remedy="give the path of a file, or rows: a list of mappings or tuples")
        self._rows = [_plain(row) for row in records]
        if not self._rows:
            raise HeedfulError("there are no rows", where=NAME, remedy="give at least one")

    def named(self, layouts: Sequence[Sequence[str]]) -> Rows:
        """The same rows, tuples as mappings: by the layout that has as many names as a tuple has places."""
        by_length = {len(layout): layout for layout in layouts}
        return Rows([self._named(row, place, by_length) for place, row in enumerate(self._rows, start=1)])

    def objects(self, on_bad: Callable[[HeedfulError], object] = raised) -> Iterator[tuple[str, dict[str, Any]]]:
        """Each row after its place; `on_bad` hears of what is none."""
        for place, row in enumerate(self._rows, start=1):
            if isinstance(row, dict):
                yield f"{NAME}:{place}", row
                continue
            what = f"a row of type {type(row).__name__}"
            on_bad(HeedfulError(what, where=f"{NAME}:{place}", remedy="give mappings, such as {'text': '…'}"))

    def __str__(self) -> str:
        told = json.dumps(self._rows, ensure_ascii=True, sort_keys=True, default=repr).encode()
        return f"{NAME} ({len(self._rows)}, sha256 {hashlib.sha256(told).hexdigest()[:16]})"

    @staticmethod
    def _named(row: Any, place: int, by_length: Mapping[int, Sequence[str]]) -> Any:
        if isinstance(row, str) and 1 in by_length:
            row = [row]
        if not isinstance(row, list):
            return row
        if len(row) not in by_length:
            known = " or ".join(f"({', '.join(layout)})" for layout in by_length.values())
            what = f"a tuple of {len(row)} values"
            raise HeedfulError(what, where=f"{NAME}:{place}", remedy=f"give {known}, or mappings")
        return dict(zip(by_length[len(row)], row, strict=True))


# Where data comes from.
DataSource = Path | Rows


def _plain(value: Any) -> Any:
    """A value as JSON would have it; numbers and arrays of other libraries become Python's."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if hasattr(value, "tolist") and not isinstance(value, str):
        return _plain(value.tolist())
    return value
