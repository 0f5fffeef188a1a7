"""Tensors that lie in slices of their rows, one slice a process, as files that any number of processes can read.

    slices.json                           of each tensor the whole shape, and how many of its rows each file has
    slices-00001-of-00004.safetensors …   the rows; what is not sliced is in the first file

A slice is what PyTorch calls a DTensor with the placement Shard(0). This file knows nothing else of it than that such a
tensor has the shape of the whole and a `to_local`, so that reading weights does not load torch's distributed part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from heedful.checkpoints.stored_tensor import StoredTensor
from heedful.errors import HeedfulError
from heedful.json_files import read_json, write_json

INDEX = "slices.json"
_MOST_FILES = 100_000
_REMEDY = "an earlier checkpoint is the way on"


def is_sliced(tensor: Tensor) -> bool:
    """Whether this process has some rows of the tensor only."""
    return hasattr(tensor, "to_local")


def own_rows(tensor: Tensor) -> Tensor:
    """The rows of a tensor that this process has, not copied; the tensor itself if it is not sliced."""
    with torch.no_grad():
        local: Tensor = cast(Any, tensor).to_local() if is_sliced(tensor) else tensor
    return local


def whole(tensor: Tensor) -> Tensor:
    """All rows of a tensor; of one that is sliced every process must ask."""
    full: Tensor = cast(Any, tensor).full_tensor() if is_sliced(tensor) else tensor
    return full


def first_row(tensor: Tensor, rank: int, size: int) -> int:
    """Where the rows of process `rank` begin: each has as many, rounded up, and the last ones what is left."""
    return min(rank * -(-tensor.shape[0] // size), tensor.shape[0])


def slice_file(folder: Path, number: int, of: int) -> Path:
    """The file of process `number`, counted from 0."""
    return folder / f"slices-{number + 1:05d}-of-{of:05d}.safetensors"


def stored_slices(tensors: Mapping[str, Tensor], rank: int) -> dict[str, Tensor]:
    """What the file of a process holds: its rows, and in the first file all that is not sliced."""
    mine = {name: own_rows(tensor) for name, tensor in tensors.items() if is_sliced(tensor) or rank == 0}
    return {name: rows.detach().cpu().contiguous() for name, rows in mine.items()}


def write_slice_index(folder: Path, tensors: Mapping[str, Tensor], size: int) -> None:
    """Write down which file of `size` has which rows."""
    listed = {name: {"shape": list(tensor.shape), "rows": _rows(tensor, size)} for name, tensor in tensors.items()}
    write_json(folder / INDEX, {"files": size, "tensors": listed})


def _rows(tensor: Tensor, size: int) -> list[int] | None:
    if not is_sliced(tensor):
        return None
    ends = [first_row(tensor, rank, size) for rank in range(size + 1)]
    return [end - start for start, end in pairwise(ends)]


@dataclass(frozen=True)
class Sliced:
    """A tensor in several files."""

    name: str
    shape: tuple[int, ...]
    parts: Sequence[StoredTensor]

    @property
    def where(self) -> str:
        """The first of its places, for error messages."""
        return self.parts[0].where

    @property
    def dtype(self) -> str:
        """The type of its numbers."""
        return self.parts[0].dtype

    def read(self) -> Tensor:
        """The whole tensor."""
        parts = [part.read() for part in self.parts]
        return parts[0] if len(parts) == 1 else torch.cat(parts)


class SliceIndex:
    """What slices.json says, checked against itself."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / INDEX
        said = read_json(self.path)
        try:
            self._files = int(said["files"])
            if not 1 <= self._files <= _MOST_FILES:
                raise ValueError(f"{self._files} files")
            self._tensors = {str(name): _entry(entry, self._files) for name, entry in said["tensors"].items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise HeedfulError(f"not a list of slices: {error}", where=self.path, remedy=_REMEDY) from error

    @property
    def files(self) -> list[Path]:
        """The files, in order."""
        return [slice_file(self.path.parent, number, self._files) for number in range(self._files)]

    def joined(self, files: Sequence[Mapping[str, StoredTensor]]) -> dict[str, StoredTensor]:
        """Every tensor, out of the opened files."""
        return {name: self._joined(name, shape, rows, files) for name, (shape, rows) in self._tensors.items()}

    def _joined(
        self, name: str, shape: tuple[int, ...], rows: Sequence[int], files: Sequence[Mapping[str, StoredTensor]]
    ) -> StoredTensor:
        """`rows` of each file; one that is not sliced has its all in the first."""
        for file, count in zip(files, rows, strict=False):
            if name not in file or tuple(file[name].shape)[:1] != ((count,) if shape else ()):
                what = f"{name}: a file does not hold the rows that the list says"
                raise HeedfulError(what, where=self.path, remedy=_REMEDY)
        parts = [file[name] for file, count in zip(files, rows, strict=False) if count]
        return Sliced(name, shape, parts or [files[0][name]])


def _entry(entry: Mapping[str, Any], files: int) -> tuple[tuple[int, ...], list[int]]:
    shape, rows = tuple(map(int, entry["shape"])), entry["rows"]
    if rows is None:
        return shape, [shape[0] if shape else 1]
    if len(rows) != files or min(rows) < 0 or sum(rows) != shape[0]:
        raise ValueError(f"{rows} are not the {shape[0]} rows in {files} files")
    return shape, [int(count) for count in rows]
