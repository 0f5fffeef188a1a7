"""`pytorch_model.bin` as torch.save writes it, read without torch.load: a pickle that is not run, and plain numbers.

zip layout (torch 1.6 and later)   NAME/data.pkl, NAME/data/0, NAME/data/1, …, none of them compressed
legacy layout                      five pickles: magic number, version, system, the state dict, the keys of the
                                   storages; then for each key the count (8 bytes) and the numbers of its storage
"""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from heedful.checkpoints.state_dict_pickle import StorageRef, TensorRef, read_pickle
from heedful.checkpoints.stored_tensor import DTYPES, FETCH_AGAIN, StoredTensor, mapped, numbers
from heedful.errors import HeedfulError

_ZIP = b"PK\x03\x04"
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_LEGACY_VERSION = 1001
_COUNT = struct.Struct("<q")
_ENCRYPTED = 1


@dataclass(frozen=True)
class _Storage:
    """The bytes of a storage in the mapped file, and their checksum if the layout has one."""

    data: memoryview
    start: int
    size: int
    checksum: int | None = None
    swapped: bool = False

    @cached_property
    def sound(self) -> bool:
        content = self.data[self.start : self.start + self.size]
        return self.checksum is None or zlib.crc32(content) == self.checksum


@dataclass(frozen=True)
class _BinTensor:
    """A tensor in a .bin file: a view of a storage."""

    name: str
    path: Path
    storage: _Storage
    ref: TensorRef

    @property
    def where(self) -> str:
        return f"{self.path}: {self.name}"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.ref.shape

    @property
    def dtype(self) -> str:
        return self.ref.storage.dtype

    def read(self) -> Tensor:
        """The numbers as a view of the mapped file, after the checksum of their storage was found right."""
        if not self.storage.sound:
            raise HeedfulError("the checksum of the storage is wrong", where=self.where, remedy=FETCH_AGAIN)
        ref, storage = self.ref, self.storage
        steps = zip(ref.shape, ref.stride, strict=True)
        reach = 1 + sum((size - 1) * step for size, step in steps) if math.prod(ref.shape) else 0
        start = storage.start + ref.offset * DTYPES[self.dtype].itemsize
        return numbers(storage.data, start, reach, self.dtype, storage.swapped).as_strided(ref.shape, ref.stride)


def read_bin(path: Path) -> dict[str, StoredTensor]:
    """The tensors of a file by their names, mapped; a file that asks for anything else than tensors is refused."""
    data = mapped(path)
    try:
        refs, storages = (_read_zip if data[:4] == _ZIP else _read_legacy)(path, data)
        return {name: _BinTensor(name, path, storages[ref.storage.key], ref) for name, ref in refs.items()}
    except (ValueError, OverflowError, OSError, struct.error, zipfile.BadZipFile, NotImplementedError) as error:
        raise HeedfulError(f"not a sound file of torch.save: {error}", where=path, remedy=FETCH_AGAIN) from error


def _read_zip(path: Path, data: memoryview) -> tuple[dict[str, TensorRef], dict[str, _Storage]]:
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
    records = {entry.filename: _record(entry, data) for entry in entries}
    if len(records) < len(entries):
        raise ValueError("two files in the archive have one name")
    pickles = [name for name in records if name.endswith("/data.pkl")]
    if len(pickles) != 1:
        raise ValueError("the archive does not hold one data.pkl")
    folder = pickles[0].removesuffix("data.pkl")
    swapped = f"{folder}byteorder" in records and bytes(_content(records, f"{folder}byteorder")) == b"big"
    refs = _state_dict(read_pickle(_content(records, pickles[0]), 0, path)[0], path)
    storages = {}
    for key, ref in _storages_of(refs).items():
        found = records.get(f"{folder}data/{key}")
        if found is None or found.size != _size(ref):
            raise ValueError(f"the archive does not hold the {ref.count} numbers of the storage {key[:100]!r}")
        storages[key] = replace(found, swapped=swapped)
    return refs, storages


def _record(entry: zipfile.ZipInfo, data: memoryview) -> _Storage:
    """Where the bytes of a file in the archive lie."""
    if ".." in entry.filename.split("/") or entry.filename.startswith("/") or "\\" in entry.filename:
        raise ValueError(f"the archive has a file with the path {entry.filename[:100]!r}")
    if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & _ENCRYPTED:
        raise ValueError(f"{entry.filename[:100]!r} in the archive is compressed or encrypted, as torch never does")
    if not 0 <= entry.header_offset <= len(data) - _LOCAL_HEADER.size:
        raise ValueError("the archive is not complete")
    signature, *_, name_size, extra_size = _LOCAL_HEADER.unpack_from(data, entry.header_offset)
    start = entry.header_offset + _LOCAL_HEADER.size + name_size + extra_size
    if signature != _ZIP or entry.file_size != entry.compress_size or start + entry.file_size > len(data):
        raise ValueError("the archive is not complete")
    return _Storage(data, start, entry.file_size, entry.CRC)


def _content(records: Mapping[str, _Storage], name: str) -> memoryview:
    record = records[name]
    if not record.sound:
        raise ValueError(f"the checksum of {name} is wrong")
    return record.data[record.start : record.start + record.size]


def _read_legacy(path: Path, data: memoryview) -> tuple[dict[str, TensorRef], dict[str, _Storage]]:
    position, values = 0, []
    for _ in range(5):
        value, position = read_pickle(data, position, path)
        values.append(value)
    magic, version, _, state_dict, keys = values
    if magic != _LEGACY_MAGIC or version != _LEGACY_VERSION:
        raise ValueError("it does not begin as torch.save begins a file")
    refs = _state_dict(state_dict, path)
    wanted = _storages_of(refs)
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys) or sorted(keys) != sorted(wanted):
        raise ValueError("its storages are not those of its tensors")
    storages = {}
    for key in keys:
        (count,) = _COUNT.unpack_from(data, position)
        start, position = position + _COUNT.size, position + _COUNT.size + _size(wanted[key])
        if count != wanted[key].count or position > len(data):
            raise ValueError(f"it does not hold the {wanted[key].count} numbers of the storage {key[:100]!r}")
        storages[key] = _Storage(data, start, _size(wanted[key]))
    return refs, storages


def _state_dict(value: Any, path: Path) -> dict[str, TensorRef]:
    if not isinstance(value, dict):
        raise ValueError("it does not hold a dictionary of tensors")
    for name, ref in value.items():
        if not isinstance(name, str) or not isinstance(ref, TensorRef):
            what = f"{str(name)[:100]!r} is no tensor"
            raise HeedfulError(what, where=path, remedy="save the model's state_dict() and nothing beside it")
    return value


def _storages_of(refs: Mapping[str, TensorRef]) -> dict[str, StorageRef]:
    """The storages that tensors are views of, by their keys."""
    storages: dict[str, StorageRef] = {}
    for ref in refs.values():
        known = storages.setdefault(ref.storage.key, ref.storage)
        if (known.dtype, known.count) != (ref.storage.dtype, ref.storage.count):
            raise ValueError("two tensors disagree about the storage that they share")
    return storages


def _size(ref: StorageRef) -> int:
    return ref.count * DTYPES[ref.dtype].itemsize
