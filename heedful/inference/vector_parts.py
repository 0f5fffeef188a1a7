"""Vectors streamed to an address, where nothing can be appended to a file: part by part, put together at the end.

A commit writes what is new as `NAME.partial.00000-…`, the lengths of its texts and then their rows, unless workers
have written a part for each chunk; and then `NAME.partial.json`, which names all parts with their checksums. Whoever
starts the same request again, on whatever machine, goes on from there. At the end the parts are read back, checked, and
become one file, the same as on a path.
"""

from __future__ import annotations

import hashlib
import io
import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np

from heedful.addresses import Address
from heedful.errors import HeedfulError
from heedful.inference.embedder import Chunk
from heedful.inference.vector_layout import VectorLayout, other_request

# A part is worth its round trips after so many seconds, the most that a kill can cost, or with so many bytes.
PART_SECONDS, PART_BYTES = 30.0, 32_000_000
# Parts on their way back at a time, since each answer of a store takes its time.
AT_ONCE = 4


@dataclass(frozen=True)
class PartWriter:
    """Writes parts beside the output, in whatever process."""

    path: Address

    def __call__(self, first: int, lengths: bytes, rows: bytes) -> Mapping[str, Any]:
        """Write the rows of the texts from number `first` on; gives what the journal says of the part."""
        content = lengths + rows
        # Two that write one output have parts of their own, each named by its journal.
        part = self.path.with_name(f"{self.path.name}.partial.{first:012d}-{secrets.token_hex(4)}")
        with part.new_file() as file:
            file.write(content)
        count = int(np.frombuffer(lengths, "<i8").sum())
        return {"name": part.name, "lengths": len(lengths), "rows": count, "checksum": _digest(content)}


class VectorParts:
    """An output at an address in progress. `done` is what an earlier, interrupted attempt has left."""

    def __init__(self, path: Address, layout: VectorLayout, request: Mapping[str, Any], restart: bool = False) -> None:
        self.path = path
        self.layout = layout
        self.request = dict(request)
        self.partial = path.with_name(path.name + ".partial.json")
        self._origin_file = path.with_name(path.name + ".origin.json")
        if restart:
            self.forget()
        self.done = self._progress()
        self._parts: list[Mapping[str, Any]] = list(self.done.get("parts", ()))
        self._rows: list[bytes] = []
        self._lengths: list[bytes] = []

    def __enter__(self) -> VectorParts:
        if not self.done:  # that nothing can be written is told before anything is computed
            self._write_journal(texts=0, digest="", truncated=0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._parts:  # nothing that could be continued
            self.forget()

    def append(self, chunk: Chunk, lines: Iterable[str] | None = None) -> None:
        """Add the vectors of a chunk; for jsonl, its lines."""
        self._rows.append(self.layout.rows(chunk, lines))
        self._lengths.append(self.layout.lengths(chunk))

    def writer(self) -> PartWriter:
        """What workers write parts with."""
        return PartWriter(self.path)

    def add_written(self, lengths: bytes, part: Mapping[str, Any]) -> None:
        """The rows of the next texts are in a part."""
        self._parts.append(part)

    def is_due(self, seconds: float) -> bool:
        """Whether to commit so long after the last time."""
        return seconds > PART_SECONDS or sum(map(len, self._rows)) > PART_BYTES

    def commit(self, texts: int, digest: str, truncated: int) -> None:
        """Everything appended so far is good: `texts` texts whose contents have this digest."""
        if self._lengths:
            lengths, rows = b"".join(self._lengths), b"".join(self._rows)
            self._parts.append(self.writer()(texts - len(lengths) // 8, lengths, rows))
            self._rows, self._lengths = [], []
        self._write_journal(texts=texts, digest=digest, truncated=truncated)

    def finish(self, texts: int, digest: str, truncated: int) -> None:
        """Put the parts together under the file's name, and note what it was made of."""
        if self._lengths:
            self.commit(texts, digest, truncated)
        lengths = io.BytesIO()
        self._origin_file.unlink(missing_ok=True)  # that of a file which is replaced now
        with self.path.new_file() as file:
            size = file.write(self.layout.header(sum(part["rows"] for part in self._parts), texts))
            for part, content in zip(self._parts, self._contents(), strict=True):
                lengths.write(content[: part["lengths"]])
                size += file.write(content[part["lengths"] :])
            size += file.write(self.layout.footer(lengths.getvalue()))
        second = self.layout.lengths_name(self.path.name)
        if second is not None:
            with self.path.with_name(second).new_file() as file:
                np.save(file, np.frombuffer(lengths.getvalue(), "<i8"))
        made = {"request": self.request, "texts": texts, "digest": digest, "truncated": truncated}
        _write_json(self._origin_file, {**made, "bytes": size})
        self.forget()

    @property
    def origin(self) -> dict[str, Any] | None:
        """What the finished file was made of, if there is one that is known to be ours."""
        found = _read_json(self._origin_file)
        return found if found is not None and found.get("bytes") == self.path.size() else None

    def forget(self) -> None:
        """Remove what an unfinished attempt has left."""
        self.partial.unlink(missing_ok=True)
        for one in self.path.with_name("").iterdir():
            if one.name.startswith(f"{self.path.name}.partial."):
                one.unlink(missing_ok=True)
        self.done, self._parts = {}, []

    def _write_journal(self, **progress: Any) -> None:
        _write_json(self.partial, {"request": self.request, **progress, "parts": self._parts})

    def _progress(self) -> dict[str, Any]:
        """What the journal of an earlier attempt at the same request says; another request's is refused."""
        found = _read_json(self.partial)
        if found is None:
            return {}
        if found.get("request") != self.request:
            raise other_request(self.partial)
        there = {one.name for one in self.path.with_name("").iterdir()}
        return found if all(part["name"] in there for part in found["parts"]) else {}

    def _contents(self) -> Iterator[bytes]:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for start in range(0, len(self._parts), AT_ONCE):
                yield from pool.map(self._read, self._parts[start : start + AT_ONCE])

    def _read(self, part: Mapping[str, Any]) -> bytes:
        where = self.path.with_name(part["name"])
        with where.open() as file:
            content = file.read()
        if _digest(content) != part["checksum"]:
            raise HeedfulError("a part of the output is damaged", where=where, remedy="start over with `restart`")
        return content


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _write_json(where: Address, value: Mapping[str, Any]) -> None:
    with where.new_file() as file:
        file.write(json.dumps(value).encode())


def _read_json(where: Address) -> dict[str, Any] | None:
    """The object in a file of ours; None if there is none, or nothing that makes sense."""
    if not where.is_file():
        return None
    try:
        found = json.loads(where.read_text())
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
