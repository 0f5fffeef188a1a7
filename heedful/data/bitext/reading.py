"""Sentences and their translations in files: a table with a column for each side, or two texts that go line by line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from heedful.data.labelled.dataset import Dataset, Remark
from heedful.data.oddities import Oddities
from heedful.data.tables import column_named, is_table, read_table, text_under
from heedful.data.text_files import is_delimited, refuse_ragged
from heedful.errors import HeedfulError
from heedful.text.documents import text_lines
from heedful.text.rows import DataSource, Rows

EMPTY = "pairs with an empty side, left out"
KEPT = "pairs with an empty side, which count for nothing in the whole"


@dataclass(frozen=True)
class SentencePair:
    """A text and what it is to become: its translation, or the reply to it."""

    source: str
    target: str
    where: str = ""  # file:line

    @property
    def empty(self) -> bool:
        """Whether a side is missing."""
        return not self.source or not self.target


def read_pairs(
    files: Sequence[str | DataSource], source: str, target: str, whole: bool = True
) -> Dataset[SentencePair]:
    """The pairs of one table or JSON-lines file by the names of two columns, or of two texts, whose lines are pairs.

    White space around a text is taken off, and pairs with an empty side are counted and, unless `whole` is False, left
    out.
    """
    if len(files) == 1:
        return _from_table(_opened(files[0], source, target), source, target, whole)
    if len(files) == 2:
        return _from_texts(Path(str(files[0])), Path(str(files[1])), whole)
    what = f"{len(files)} files do not make pairs"
    raise HeedfulError(what, remedy="give one table with a column for each side, or two texts of equally many lines")


def _opened(data: str | DataSource, source: str, target: str) -> DataSource:
    return data.named([(source, target)]) if isinstance(data, Rows) else Path(data)


def _from_table(path: DataSource, source: str, target: str, whole: bool) -> Dataset[SentencePair]:
    if not whole and isinstance(path, Path) and is_delimited(path):
        refuse_ragged(path)
    table = read_table(path)
    if len(table.columns) == 1 and not is_table(path):
        what = "this is one text, and pairs have two sides"
        raise HeedfulError(what, where=path, remedy="give the text of the other side too, or a table of both")
    left, right = column_named(source, table, "source"), column_named(target, table, "target")
    pairs = (SentencePair(text_under(left, row), text_under(right, row), row.where) for row in table.rows)
    kept = list(_stripped(pairs, table.oddities, whole))
    return _some(kept, table.oddities.remarks, path)


def _from_texts(source: Path, target: Path, whole: bool) -> Dataset[SentencePair]:
    oddities, others = Oddities(source), Oddities(target)
    kept = list(_stripped(_side_by_side(source, target), oddities, whole))
    return _some(kept, oddities.remarks + others.remarks, source)


def _side_by_side(source: Path, target: Path) -> Iterator[SentencePair]:
    left, right = text_lines(source), text_lines(target)
    for number, (first, second) in enumerate(zip_longest(left, right), start=1):
        if first is None or second is None:
            shorter, longer, rest = (source, target, right) if first is None else (target, source, left)
            total = number + sum(1 for _ in rest)
            raise HeedfulError(
                f"the files have different numbers of lines: {number - 1:,} in {shorter}, {total:,} in {longer}",
                where=f"{longer}:{number}",
                remedy="each line of one file belongs to the same line of the other: look where they part",
            )
        yield SentencePair(first, second, f"{source}:{number}")


def _stripped(pairs: Iterable[SentencePair], oddities: Oddities, whole: bool) -> Iterator[SentencePair]:
    for pair in pairs:
        stripped = SentencePair(pair.source.strip(), pair.target.strip(), pair.where)
        if stripped.empty:
            oddities.note(EMPTY if whole else KEPT, pair.where)
        if not (whole and stripped.empty):
            yield stripped


def _some(pairs: list[SentencePair], remarks: tuple[Remark, ...], where: DataSource) -> Dataset[SentencePair]:
    if all(pair.empty for pair in pairs):
        raise HeedfulError("no pair has text on both sides", where=where, remedy="give a file that holds pairs")
    return Dataset(pairs, remarks)
