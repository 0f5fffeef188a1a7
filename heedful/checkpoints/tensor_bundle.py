"""TensorFlow's tensor bundle, the checkpoint of TensorFlow 1 and 2, read without TensorFlow.

PREFIX.index                  a table: "" -> the header, a tensor's name -> its type, shape, place and checksum
PREFIX.data-00000-of-00002    the numbers, one tensor after the other, in any number of shards
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from heedful.checkpoints.crc32c import crc32c, masked
from heedful.checkpoints.sorted_table import read_table, unsound_as_error
from heedful.checkpoints.stored_tensor import DTYPES, FETCH_AGAIN, mapped, numbers
from heedful.errors import HeedfulError
from heedful.wire_format import fields

# Numbers of tensorflow.DataType.
_TYPES: Mapping[int, str] = {
    1: "F32", 2: "F64", 3: "I32", 4: "U8", 5: "I16", 6: "I8", 9: "I64", 10: "BOOL", 14: "BF16", 19: "F16",
}  # fmt: skip
_BIG_ENDIAN = 1
_MOST_SHARDS = 99_999


@dataclass(frozen=True)
class _Header:
    """BundleHeaderProto."""

    shards: int
    swapped: bool


@dataclass(frozen=True)
class _Entry:
    """BundleEntryProto."""

    type: int
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    checksum: int
    sliced: bool


@dataclass(frozen=True)
class BundleTensor:
    """A tensor in a shard of a bundle."""

    name: str
    path: Path
    shard: memoryview
    entry: _Entry
    swapped: bool

    @property
    def where(self) -> str:
        return f"{self.path}: {self.name}"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.entry.shape

    @property
    def dtype(self) -> str:
        return _TYPES[self.entry.type]

    def read(self) -> Tensor:
        """The numbers as a view of the mapped shard, after their checksum was found right."""
        start, end = self.entry.offset, self.entry.offset + self.entry.size
        if masked(crc32c(self.shard[start:end])) != self.entry.checksum:
            raise HeedfulError("the checksum of the tensor is wrong", where=self.where, remedy=FETCH_AGAIN)
        return numbers(self.shard, start, math.prod(self.shape), self.dtype, self.swapped).view(self.shape)


def read_bundle(index: Path) -> dict[str, BundleTensor]:
    """The tensors of a bundle by their names, after a check that all shards are there and long enough."""
    with unsound_as_error(index):
        table = read_table(index)
        if b"" not in table:
            raise ValueError("it has no header")
        header = _header(table.pop(b""))
        entries = {key.decode("utf-8", "backslashreplace"): _entry(value) for key, value in table.items()}
        if any(entry.shard >= header.shards for entry in entries.values()):
            raise ValueError("a tensor lies in a shard beyond the last")
    for name, entry in entries.items():
        _check_supported(name, entry, f"{index}: {name}")
    paths = _shards(index, header.shards)
    shards = {number: mapped(paths[number]) for number in sorted({entry.shard for entry in entries.values()})}
    tensors = {
        name: BundleTensor(name, paths[entry.shard], shards[entry.shard], entry, header.swapped)
        for name, entry in entries.items()
    }
    for tensor in tensors.values():
        _check_place(tensor)
    return tensors


def _shards(index: Path, count: int) -> list[Path]:
    paths = [index.with_name(f"{index.stem}.data-{number:05d}-of-{count:05d}") for number in range(count)]
    absent = [path.name for path in paths if not path.is_file()]
    if absent:
        others = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
        what = f"the index is there, but the data file {absent[0]}{others} is absent"
        raise HeedfulError(what, where=index, remedy="fetch that file too; it holds the weights")
    return paths


def _header(message: bytes) -> _Header:
    found = dict(fields(message))
    shards, order = found.get(1, 0), found.get(2, 0)
    if not isinstance(shards, int) or not 0 <= shards <= _MOST_SHARDS:
        raise ValueError("its header names no number of shards")
    return _Header(shards, swapped=order == _BIG_ENDIAN)


def _entry(message: bytes) -> _Entry:
    whole: dict[int, int] = {}
    shape: tuple[int, ...] = ()
    sliced = False
    for number, value in fields(message):
        if isinstance(value, int):
            whole[number] = value
        elif number == 2:
            shape = _shape(value)
        sliced |= number == 7
    shard, offset, size, checksum = (whole.get(number, 0) for number in (3, 4, 5, 6))
    return _Entry(whole.get(1, 0), shape, shard, offset, size, checksum, sliced)


def _shape(message: bytes) -> tuple[int, ...]:
    """TensorShapeProto: a message for each dimension, with its size."""
    dimensions = (dict(fields(value)) for number, value in fields(message) if number == 2 and isinstance(value, bytes))
    sizes = [dimension.get(1, 0) for dimension in dimensions]
    if any(not isinstance(size, int) or size >= 2**63 for size in sizes):
        raise ValueError("a tensor has a dimension of no known size")
    return tuple(int(size) for size in sizes)


def _check_supported(name: str, entry: _Entry, where: str) -> None:
    if entry.sliced:
        what = f"{name} is a variable in slices (partitioned), which are not supported"
        raise HeedfulError(what, where=where, remedy="save the model again without a partitioner")
    if entry.type not in _TYPES:
        what = f"{name} is of TensorFlow's data type number {entry.type}, which is none of {', '.join(_TYPES.values())}"
        remedy = "use a checkpoint of plain variables, such as TensorFlow 1 saves"
        raise HeedfulError(what, where=where, remedy=remedy)


def _check_place(tensor: BundleTensor) -> None:
    entry = tensor.entry
    if math.prod(entry.shape) * DTYPES[tensor.dtype].itemsize != entry.size:
        what = f"{tensor.name} has the shape {list(entry.shape)}, which does not fit its {entry.size} bytes"
        raise HeedfulError(what, where=tensor.where, remedy=FETCH_AGAIN)
    if entry.offset + entry.size > len(tensor.shard):
        what = f"the data file ends at byte {len(tensor.shard)}, before the end of {tensor.name}"
        raise HeedfulError(what, where=tensor.where, remedy=FETCH_AGAIN)
