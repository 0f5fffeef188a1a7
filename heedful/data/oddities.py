"""What is odd about a file, counted while it is read."""

from __future__ import annotations

from collections import Counter, defaultdict

from heedful.data.labelled.dataset import Remark
from heedful.text.documents import has_byte_order_mark
from heedful.text.rows import DataSource

PLACES = 3  # how many are named of each kind


class Oddities:
    """Counts each kind of oddity and keeps its first places; a byte order mark at the start of a file is one."""

    def __init__(self, path: DataSource | None = None) -> None:
        self._counts: Counter[str] = Counter()
        self._places: dict[str, list[str]] = defaultdict(list)
        if path is not None and has_byte_order_mark(path):
            self.note("byte order mark at the start, passed over", f"{path}:1")

    def note(self, what: str, where: str) -> None:
        """Count one more of a kind."""
        self._counts[what] += 1
        if len(self._places[what]) < PLACES:
            self._places[what].append(where)

    def count(self, what: str) -> int:
        """How many of a kind there were so far."""
        return self._counts[what]

    def first(self, what: str) -> str:
        """Where the first of a kind was."""
        return self._places[what][0]

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """All kinds so far, in the order in which they were met."""
        return tuple(Remark(what, count, tuple(self._places[what])) for what, count in self._counts.items())
