"""Vectors streamed to a file that survives being killed.

Rows are appended to `NAME.partial`, and after each commit `NAME.partial.json` says how far it is good. Whoever starts
the same request again goes on from there. When all is written the header is filled in and the file gets its name, and
`NAME.origin.json` says what it was made of, so that nobody replaces it by something else unawares.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
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
