"""What is odd about a file, counted while it is read."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from heedful.data.labelled.dataset import PLACES, Dataset, Remark
from heedful.errors import HeedfulError
from heedful.text.documents import has_byte_order_mark
from heedful.text.rows import DataSource

R = TypeVar("R")
E = TypeVar("E")


class Oddities:
    """Counts each kind of oddity and keeps its first places; a byte order mark at the start of a file is one.

    A row that cannot be used is an error at once, or with `patient` kept in `bad`, so that all can be told together.
    """

    def __init__(self, path: DataSource | str | None = None, patient: bool = False) -> None:
        self.patient = patient
        self._counts: Counter[str] = Counter()
        self._places: dict[str, list[str]] = defaultdict(list)
        self.bad: list[HeedfulError] = []
        if path is not None and has_byte_order_mark(path):
            self.note("byte order mark at the start, passed over", f"{path}:1")

    def note(self, what: str, where: str) -> None:
        """Count one more of a kind."""
        self._counts[what] += 1
        if len(self._places[what]) < PLACES:
            self._places[what].append(where)

    def refuse(self, error: HeedfulError) -> None:
        """A row cannot be used."""
        if not self.patient:
            raise error
        self.bad.append(error)

    def each(self, rows: Iterable[R], read: Callable[[R], E | None]) -> Iterator[E]:
        """What `read` makes of each row; None is nothing, and a row that it refuses is a bad one."""
        for row in rows:
            try:
                example = read(row)
            except HeedfulError as error:
                self.refuse(error)
                continue
            if example is not None:
                yield example

    def dataset(self, examples: Sequence[E]) -> Dataset[E]:
        """The examples with everything that is odd or bad beside them."""
        return Dataset(examples, self.remarks, tuple(self.bad))

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
