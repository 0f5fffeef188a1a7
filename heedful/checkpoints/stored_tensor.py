"""One tensor in a file of weights, whatever the format of the file, and the mapped numbers under it."""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from heedful.errors import HeedfulError

# As safetensors calls them, whatever the format.
DTYPES: Mapping[str, torch.dtype] = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
FETCH_AGAIN = "copy or download the file again; it is damaged or not complete"


class StoredTensor(Protocol):
    """A tensor on disk: what it is, known from headers alone, and its numbers when they are asked for."""

    @property
    def where(self) -> str: ...  # the file and the name in it, for error messages

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> str: ...  # a key of DTYPES

    def read(self) -> Tensor:
        """The numbers, where possible as a view of the mapped file."""
        ...


def mapped(path: Path) -> memoryview:
    """The bytes of a file, mapped so that writing to them would change only this process's copy."""
    try:
        with path.open("rb") as file:
            if not path.stat().st_size:
                return memoryview(bytearray())
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    except OSError as error:
        raise HeedfulError(f"cannot read: {error}", where=path, remedy="see that it is a file you may read") from error


def numbers(data: memoryview, start: int, count: int, dtype: str, swapped: bool = False) -> Tensor:
    """So many numbers from byte `start` on, `swapped` if they were written with the highest byte first."""
    kind = DTYPES[dtype]
    if count == 0:
        return torch.empty(0, dtype=kind)
    raw = torch.frombuffer(data, dtype=torch.uint8, count=count * kind.itemsize, offset=start)
    if swapped:
        raw = raw.view(count, kind.itemsize).flip(1).flatten()
    elif start % kind.itemsize:
        raw = raw.clone()  # arithmetic wants numbers at multiples of their size, files need not have them there
    return raw.view(kind)
