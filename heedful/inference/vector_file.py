"""Vectors streamed to a file that survives being killed.

Three formats, all of which can be written front to back:

    npy          a header, then the rows; for words and tokens a second file `NAME.lengths.npy` tells how many rows
                 each text has
    safetensors  a header, then the rows `vectors` and, for words and tokens, their `lengths`
    jsonl        one object a text, in the layout of Google's extract_features

Rows are appended to `NAME.partial`, and after each commit `NAME.partial.json` says how far it is good. Whoever starts
the same request again goes on from there. When all is written the header is filled in and the file gets its name, and
`NAME.origin.json` says what it was made of, so that nobody replaces it by something else unawares.
"""

from __future__ import annotations

import json
import os
import struct
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

FORMATS = ("npy", "safetensors", "jsonl")
# Room for a header whose row count is known only at the end. Both formats allow padding with spaces.
HEADER_BYTES = 256


class VectorFile:
    """An output file in progress. `done` is what an earlier, interrupted attempt has left."""

    def __init__(
        self, path: Path, kind: str, width: int, ragged: bool, request: Mapping[str, Any], restart: bool = False
    ) -> None:
        self.path = path
        self.kind = kind
        self.width = width
        self.ragged = ragged  # several rows a text
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
            start = 0 if self.kind == "jsonl" else HEADER_BYTES
            self._rows = self._files.enter_context(_reopened(self.partial, self.done.get("bytes", start)))
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
            if lines is not None:
                self._rows.write("".join(lines).encode())
            else:
                self._rows.write(b"".join(np.ascontiguousarray(v, "<f4").tobytes() for v in chunk.vectors))
            self._lengths.write(np.array([len(np.atleast_2d(v)) for v in chunk.vectors], "<i8").tobytes())

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
            if self.kind == "safetensors" and self.ragged:
                self._rows.write(lengths.tobytes())
            if self.kind != "jsonl":
                self._rows.seek(0)
                self._rows.write(self._header(int(lengths.sum()), len(lengths)))
            self._rows.flush()
            os.fsync(self._rows.fileno())
        if self.kind == "npy" and self.ragged:
            with atomic_file(self.path.with_name(self.path.name.removesuffix(".npy") + ".lengths.npy"), "wb") as file:
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

    def _header(self, rows: int, texts: int) -> bytes:
        if self.kind == "npy":
            described = repr({"descr": "<f4", "fortran_order": False, "shape": (rows, self.width)}).encode()
            body = described.ljust(HEADER_BYTES - 11) + b"\n"
            return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(body)) + body
        size = rows * self.width * 4
        tensors: dict[str, Any] = {"vectors": {"dtype": "F32", "shape": [rows, self.width], "data_offsets": [0, size]}}
        if self.ragged:
            tensors["lengths"] = {"dtype": "I64", "shape": [texts], "data_offsets": [size, size + 8 * texts]}
        body = json.dumps(tensors).encode().ljust(HEADER_BYTES - 8)
        return struct.pack("<Q", len(body)) + body

    def _progress(self) -> dict[str, Any]:
        """What the journal of an earlier attempt at the same request says; another request's is refused."""
        try:
            found: dict[str, Any] = json.loads(self.journal.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        if found.get("request") != self.request:
            raise HeedfulError(
                "an unfinished output of other settings, another model or another input is in the way",
                where=self.partial,
                remedy="finish it with the settings it was started with, or start over with `restart`",
            )
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
