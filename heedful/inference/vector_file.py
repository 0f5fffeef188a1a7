"""Vectors streamed to a file that survives being killed.

Rows are appended to `NAME.partial`, and after each commit `NAME.partial.json` says how far it is good. Whoever starts
the same request again goes on from there. When all is written the header is filled in and the file gets its name, and
`NAME.origin.json` says what it was made of, so that nobody replaces it by something else unawares.

Where a text has one row, workers can write theirs at their places; what is committed has been written by then.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np

from heedful.atomic import atomic_file, make_folder, plain_write_errors
from heedful.errors import HeedfulError
from heedful.file_lock import try_lock
from heedful.inference.embedder import Chunk
from heedful.inference.vector_layout import VectorLayout, other_request

# How often what is written is brought to the disk, in seconds: the most that a kill can cost.
COMMIT_EVERY = 2.0
_MARK_BYTES = 16


@dataclass(frozen=True)
class RowsInPlace:
    """Writes rows into the unfinished file, in whatever process of a machine that shares its folder."""

    partial: Path
    layout: VectorLayout
    mark: bytes  # in the place of the header, it tells this file from others of the same name

    def __call__(self, first: int, lengths: bytes, rows: bytes) -> Mapping[str, Any]:
        """Write the rows of the texts from number `first` on, down to the disk."""
        self._check()
        with plain_write_errors(self.partial), open(self.partial, "wb", opener=_as_it_is) as file:
            file.seek(self.layout.start + first * (self.layout.text_bytes or 0))
            file.write(rows)
            file.flush()
            os.fsync(file.fileno())
        return {}

    def _check(self) -> None:
        try:
            with self.partial.open("rb") as file:
                ours = file.read(len(self.mark)) == self.mark
        except OSError:
            ours = False
        if not ours:
            remedy = "write to a path that all machines share, or to an address"
            raise HeedfulError("the unfinished output is not found here", where=self.partial, remedy=remedy)


class VectorFile:
    """An output file in progress. `done` is what an earlier, interrupted attempt has left."""

    def __init__(self, path: Path, layout: VectorLayout, request: Mapping[str, Any], restart: bool = False) -> None:
        self.path = path
        self.layout = layout
        self.request = dict(request)
        self.partial = path.with_name(path.name + ".partial")
        self.partial_lengths = path.with_name(path.name + ".partial.lengths")
        self.journal = path.with_name(path.name + ".partial.json")
        self.origin_file = path.with_name(path.name + ".origin.json")
        if restart:
            self.forget()
        self.done = self._progress()
        self._files = ExitStack()

    def __enter__(self) -> VectorFile:
        with plain_write_errors(self.partial):
            make_folder(self.path.parent)
            start = self.done.get("bytes", self.layout.start)
            self._rows = self._files.enter_context(_reopened(self.partial, start))
            self._lengths = self._files.enter_context(_reopened(self.partial_lengths, 8 * self.done.get("texts", 0)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with plain_write_errors(self.partial):
            self._files.close()
        if not self.journal.exists():  # nothing that could be continued
            self.forget()

    def append(self, chunk: Chunk, lines: Iterable[str] | None = None) -> None:
        """Add the vectors of a chunk; for jsonl, its lines."""
        with plain_write_errors(self.partial):
            self._rows.write(self.layout.rows(chunk, lines))
            self._lengths.write(self.layout.lengths(chunk))

    def writer(self) -> RowsInPlace | None:
        """What workers write rows with; None where nobody knows the place of a row before all others are there."""
        if self.layout.text_bytes is None:
            return None
        mark = secrets.token_bytes(_MARK_BYTES)
        with plain_write_errors(self.partial):
            end = self._rows.tell()
            self._rows.seek(0)
            self._rows.write(mark)
            self._rows.flush()
            os.fsync(self._rows.fileno())
            self._rows.seek(end)
        return RowsInPlace(self.partial.absolute(), self.layout, mark)

    def add_written(self, lengths: bytes, part: Mapping[str, Any]) -> None:
        """The rows of the next texts are in their place."""
        texts = len(lengths) // 8
        with plain_write_errors(self.partial):
            self._rows.seek(texts * (self.layout.text_bytes or 0), os.SEEK_CUR)
            self._lengths.write(lengths)

    def is_due(self, seconds: float) -> bool:
        """Whether to commit so long after the last time."""
        return seconds > COMMIT_EVERY

    def commit(self, texts: int, digest: str, truncated: int) -> None:
        """Everything appended so far is good: `texts` texts whose contents have this digest."""
        with plain_write_errors(self.partial):
            for file in (self._rows, self._lengths):
                file.flush()
                os.fsync(file.fileno())
        progress = {"request": self.request, "texts": texts, "digest": digest, "truncated": truncated}
        with atomic_file(self.journal) as journal:
            json.dump({**progress, "bytes": self._rows.tell()}, journal)

    def finish(self, texts: int, digest: str, truncated: int) -> None:
        """Fill in the header, give the file its name, and note what it was made of."""
        with plain_write_errors(self.partial):
            self._lengths.flush()
            lengths = np.fromfile(self.partial_lengths, "<i8")
            self._rows.write(self.layout.footer(lengths.tobytes()))
            self._rows.seek(0)
            self._rows.write(self.layout.header(int(lengths.sum()), len(lengths)))
            self._rows.flush()
            os.fsync(self._rows.fileno())
        second = self.layout.lengths_name(self.path.name)
        if second is not None:
            with atomic_file(self.path.with_name(second), "wb") as file:
                np.save(file, lengths)
        with plain_write_errors(self.path):
            self.origin_file.unlink(missing_ok=True)  # that of a file which is replaced now
            self.partial.replace(self.path)
        made = {"request": self.request, "texts": texts, "digest": digest, "truncated": truncated}
        with atomic_file(self.origin_file) as file:
            json.dump({**made, "bytes": _size(self.path)}, file)
        self.forget()

    @property
    def origin(self) -> dict[str, Any] | None:
        """What the finished file was made of, if there is one that is known to be ours."""
        try:
            found: dict[str, Any] = json.loads(self.origin_file.read_text(encoding="utf-8"))
            return found if found["bytes"] == _size(self.path) else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def forget(self) -> None:
        """Remove what an unfinished attempt has left."""
        for file in (self.journal, self.partial, self.partial_lengths):
            file.unlink(missing_ok=True)
        self.done = {}

    def _progress(self) -> dict[str, Any]:
        """What the journal of an earlier attempt at the same request says; another request's is refused."""
        try:
            found: dict[str, Any] = json.loads(self.journal.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        if found.get("request") != self.request:
            raise other_request(self.partial)
        whole = _size(self.partial) >= found["bytes"] and _size(self.partial_lengths) >= 8 * found["texts"]
        return found if whole else {}


def _as_it_is(path: str, flags: int) -> int:
    """Open for writing what is there, without making it or taking anything away."""
    return os.open(path, flags & ~(os.O_CREAT | os.O_TRUNC))


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _reopened(path: Path, size: int) -> BinaryIO:
    """The file cut or filled to `size` bytes, to be continued there."""
    if not path.exists():
        path.touch()
    file = path.open("r+b")
    if not try_lock(file):  # two processes that continue one file would spoil it
        file.close()
        remedy = "wait for it, stop it, or write to another file"
        raise HeedfulError("another process is writing this output", where=path, remedy=remedy)
    file.truncate(size)
    file.seek(size)
    return file
