"""A shard: a few arrays and some facts about them in one file that proves itself whole.

The file is in the safetensors format, so that others can read it. Its metadata holds one entry, `heedful`, a JSON
object of facts; the fact `digest` is taken over all the others and over the arrays. Arrays are memory-mapped: opening a
shard reads its header alone.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from heedful.atomic import atomic_file
from heedful.errors import HeedfulError

Array = np.ndarray[Any, np.dtype[Any]]

_DTYPES = {"U8": np.uint8, "U16": np.uint16, "U32": np.uint32}
_REMEDY = "build it again: what is whole is kept"


@dataclass(frozen=True)
class Shard:
    """The facts and the memory-mapped arrays of one file."""

    path: Path
    facts: Mapping[str, Any]
    arrays: Mapping[str, Array]

    def is_whole(self) -> bool:
        """Whether the arrays and facts are those that were written; reads the whole file."""
        return bool(self.facts.get("digest") == _digest(self.arrays, self.facts))


def write_shard(path: Path, arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> None:
    """Write a shard that appears whole or not at all; the same content gives the same bytes."""
    signed = {**facts, "digest": _digest(arrays, facts)}
    with atomic_file(path, "wb") as file:
        file.write(save(dict(arrays), metadata={"heedful": json.dumps(signed, sort_keys=True)}))


def open_shard(path: Path) -> Shard:
    """Map a shard into memory; one that is cut off, or is no shard, is refused."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length)) if 0 < length < size else None
    except OSError as error:
        raise HeedfulError(f"the shard cannot be read: {error.strerror}", where=path, remedy=_REMEDY) from error
    except ValueError:
        header = None
    try:
        return _mapped(path, header, 8 + length, size)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise HeedfulError("the shard is damaged: its header makes no sense", where=path, remedy=_REMEDY) from None


def file_digest(path: Path) -> str:
    """The BLAKE2b checksum of a file, read in pieces."""
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def check_file(path: Path, size: int, checksum: str | None, where: object = None) -> None:
    """Refuse a file of another size or, when a checksum is given, of another content; `where` it is from, if copied."""
    where = where or path
    if not path.is_file():
        raise HeedfulError("the shard is missing", where=where, remedy=_REMEDY)
    found = path.stat().st_size
    if found != size:
        raise HeedfulError(f"the shard is damaged: {found} bytes instead of {size}", where=where, remedy=_REMEDY)
    if checksum is not None and file_digest(path) != checksum:
        raise HeedfulError("the shard is damaged: its checksum is wrong", where=where, remedy=_REMEDY)


def _mapped(path: Path, header: Any, start: int, size: int) -> Shard:
    facts = json.loads(header.pop("__metadata__")["heedful"])
    arrays, end = {}, 0
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        (count,) = entry["shape"]
        kind = np.dtype(_DTYPES[entry["dtype"]])
        if last - first != count * kind.itemsize or first < 0:
            raise ValueError(name)
        arrays[name] = _map(path, kind, start + first, count)
        end = max(end, last)
    if start + end != size or not isinstance(facts, dict):
        raise ValueError("size")
    return Shard(path, facts, arrays)


def _map(path: Path, kind: np.dtype[Any], offset: int, count: int) -> Array:
    if count == 0:  # nothing cannot be mapped
        return np.empty(0, kind)
    # A plain array over the map: slices of np.memmap cost several times as much.
    return np.asarray(np.memmap(path, dtype=kind, mode="r", offset=offset, shape=(count,)))


def _digest(arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> str:
    plain = {key: value for key, value in facts.items() if key != "digest"}
    digest = hashlib.blake2b(json.dumps(plain, sort_keys=True).encode(), digest_size=16)
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {math.prod(arrays[name].shape)}".encode())
        digest.update(np.ascontiguousarray(arrays[name]).data)
    return digest.hexdigest()
