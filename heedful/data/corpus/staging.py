"""Text that the workers read themselves, on its way to the shards.

Each worker reads a piece of the text and writes its documents into the folder of the corpus, one after the other as
they will stand in units: `staged-train-00012.txt`, and a file for what is held out. The process that asks is told
nothing but the hash and the size of each document. From these it cuts the same units as if it had read the text, and
tells whoever makes a shard where its documents are. Staged files are removed as soon as their shards are done.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from heedful.addresses import Address
from heedful.atomic import atomic_file
from heedful.data.corpus.pieces import Piece
from heedful.data.corpus.reading import BETWEEN, Cutter, Dealt, Layout, Part, Unit, deal, documents_of, part_of
from heedful.data.processes import Workers, mapped
from heedful.data.shards import Array
from heedful.errors import HeedfulError, TextWarning
from heedful.text.documents import no_text
from heedful.text.encodings import current_encoding, reading_as
from heedful.text.stretch import Stretch

# So many workers are kept busy by one process that reads all the text; it does so once, where staging does it twice.
ONE_READER_FEEDS = 8


class Span(NamedTuple):
    """Bytes of what a part has in the staged text of a piece."""

    piece: int
    start: int
    stop: int


@dataclass(frozen=True)
class StagedUnit:
    """A unit whose text is staged."""

    part: Part
    number: int
    spans: tuple[Span, ...]

    def read(self, folder: Path | Address) -> Unit:
        """The unit with its text."""
        texts = (_read(folder / staged_name(self.part, span.piece), span) for span in self.spans)
        return Unit(self.part, self.number, BETWEEN.join(texts))


@dataclass(frozen=True)
class Staged:
    """What is told of a piece: the hash and size of each document, and what is remarkable about its files."""

    keys: Array
    sizes: Array
    remarks: tuple[str, ...]


class Stager:
    """Reads pieces in a worker."""

    def __init__(self, folder: Path | Address, field: str | None, layout: Layout, encoding: str) -> None:
        self.folder, self.field, self.layout, self.encoding = folder, field, layout, encoding

    def __call__(self, piece: Piece) -> Staged:
        """Stage the documents of a piece."""
        piece.check()
        with reading_as(self.encoding), warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always", TextWarning)
            try:
                keys, sizes = self._write(piece)
            except HeedfulError:
                self._tell_line(piece)
                raise
        remarks = tuple(str(one.message) for one in heard if issubclass(one.category, TextWarning))
        return Staged(np.array(keys, np.uint64), np.array(sizes, np.int64), remarks)

    def _write(self, piece: Piece) -> tuple[list[int], list[int]]:
        keys, sizes = list[int](), list[int]()
        files: dict[Part, IO[bytes]] = {}
        with ExitStack() as opened:
            for one in deal(documents_of(piece.files, self.field, self.layout), piece.held_out_share):
                if one.part in files:
                    files[one.part].write(BETWEEN)
                else:
                    new = _new_file(self.folder / staged_name(one.part, piece.number))
                    files[one.part] = opened.enter_context(new)
                files[one.part].write(one.document)
                keys.append(one.key)
                sizes.append(one.size)
        return keys, sizes

    def _tell_line(self, piece: Piece) -> None:
        """Read a file from its beginning after an error in a stretch of it: only then the number of a line is known."""
        for file in piece.files:
            if isinstance(file, Stretch) and file.start:
                for _ in documents_of([str(file)], self.field, self.layout):
                    pass


class Staging:
    """The staged text of a build."""

    def __init__(
        self, folder: Path | Address, pieces: Sequence[Piece], field: str | None, layout: Layout, workers: Workers
    ) -> None:
        self.folder, self.pieces = folder, pieces
        readers = workers // ONE_READER_FEEDS if isinstance(workers, int) else workers
        self._staged = mapped(Stager, (folder, field, layout, current_encoding()), pieces, readers)
        self._under_way: deque[StagedUnit] = deque()
        self._files: dict[Part, deque[int]] = {"train": deque(), "held_out": deque()}

    def units(self, cutter: Cutter) -> Generator[StagedUnit, None, None]:
        """The units of the text, as soon as their documents are staged."""
        with closing(self._staged):
            for part, number, spans in cutter.fill(self._documents()):
                unit = StagedUnit(part, number, tuple(_joined(spans)))
                self._under_way.append(unit)
                yield unit

    def drop_used(self) -> None:
        """The next unit is a shard now: remove what is staged before the piece that it ends in."""
        unit = self._under_way.popleft()
        waiting = self._files[unit.part]
        while waiting[0] < unit.spans[-1].piece:
            (self.folder / staged_name(unit.part, waiting.popleft())).unlink(missing_ok=True)

    def _documents(self) -> Iterator[Dealt[Span]]:
        told: set[str] = set()
        pairs = zip(self.pieces, self._staged, strict=True)
        for files, some in groupby(pairs, key=lambda pair: pair[0].files):  # all stretches of a file
            empty = True
            for piece, staged in some:
                empty = empty and not len(staged.keys)
                for remark in staged.remarks:
                    if remark not in told:
                        warnings.warn(remark, TextWarning, stacklevel=2)
                told.update(staged.remarks)
                yield from self._places(piece, staged)
            if empty:
                raise no_text(files[0])

    def _places(self, piece: Piece, staged: Staged) -> Iterator[Dealt[Span]]:
        ends: dict[Part, int] = {}
        for key, size in zip(staged.keys.tolist(), staged.sizes.tolist(), strict=True):
            part = part_of(key, piece.held_out_share)
            if part in ends:
                start = ends[part] + len(BETWEEN)
            else:
                start = 0
                self._files[part].append(piece.number)
            ends[part] = start + size
            yield Dealt(part, key, size, Span(piece.number, start, start + size))


def staged_name(part: Part, piece: int) -> str:
    """What the staged text of a piece is called."""
    return f"staged-{part}-{piece:05d}.txt"


def _joined(spans: Sequence[Span]) -> Iterator[Span]:
    """The same text in few spans: neighbours have what stands between documents between them already."""
    first = last = spans[0]
    for span in spans[1:]:
        if (span.piece, span.start) != (last.piece, last.stop + len(BETWEEN)):
            yield first._replace(stop=last.stop)
            first = span
        last = span
    yield first._replace(stop=last.stop)


def _new_file(where: Path | Address) -> AbstractContextManager[IO[Any]]:
    return where.new_file() if isinstance(where, Address) else atomic_file(where, "wb")


def _read(where: Path | Address, span: Span) -> bytes:
    if isinstance(where, Address):
        return where.read_range(span.start, span.stop)
    with where.open("rb") as file:
        file.seek(span.start)
        return file.read(span.stop - span.start)
