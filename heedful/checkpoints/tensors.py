"""The tensors of a folder, read strictly: safetensors, `pytorch_model.bin`, or a checkpoint of TensorFlow.

The first two are one file, or shards with an index. The files are mapped into memory, so a tensor costs nothing until
it is copied to where it is wanted. The safetensors library itself refuses headers over 100 MB, offsets out of range and
files that are too short; here that becomes an error the user can act on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from heedful.checkpoints.bin_file import read_bin
from heedful.checkpoints.elmo_hdf5 import config_of_options, options_file, read_hdf5, weights_file
from heedful.checkpoints.int8_tensors import STEM as INT8
from heedful.checkpoints.int8_tensors import restored
from heedful.checkpoints.slices import INDEX as SLICES
from heedful.checkpoints.slices import SliceIndex
from heedful.checkpoints.stored_tensor import FETCH_AGAIN, StoredTensor
from heedful.checkpoints.tensorflow_folder import checkpoint_index, read_checkpoint
from heedful.errors import HeedfulError
from heedful.json_files import read_json, write_json

STEM = "model"
INDEXED = ".safetensors.index.json"
SINGLE = f"{STEM}.safetensors"
INDEX = f"{STEM}{INDEXED}"
FLOATS = ("F32", "F16", "BF16", "F64")


class Tensors:
    """The tensors of a folder by their names, mapped and not yet read; `notes` tells what a reader left aside."""

    def __init__(self, stored: Mapping[str, StoredTensor], folder: Path, notes: Sequence[str] = ()) -> None:
        self.folder = folder
        self.notes = tuple(notes)
        self._stored = stored

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __contains__(self, name: str) -> bool:
        return name in self._stored

    def where(self, name: str) -> str:
        """The file and the name of a tensor, for error messages."""
        return self._stored[name].where

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor, from the header alone."""
        return self._stored[name].shape

    def dtype(self, name: str) -> str:
        """The type of a tensor's numbers as safetensors writes it, such as F16."""
        return self._stored[name].dtype

    def read(self, name: str) -> Tensor:
        """The tensor as it lies in the mapped file."""
        return self._stored[name].read()


def has_tensors(folder: Path) -> bool:
    """Whether a folder has weights in any of the formats; they are not opened."""
    files = (name for single, index, _ in _FORMATS for name in (single, index))
    if any((folder / name).is_file() for name in (*files, SLICES)):
        return True
    return weights_file(folder) is not None or checkpoint_index(folder) is not None


@contextmanager
def open_tensors(folder: Path) -> Iterator[Tensors]:
    """Open the weights of a folder for the time of a `with` block."""
    for single, index, opened in _FORMATS:
        listed = _files_of(folder, single, index)
        if listed:
            with ExitStack() as stack:
                files = {path: stack.enter_context(opened(path)) for path in listed}
                for path, names in listed.items():
                    if names is not None:
                        _check_shard(path, names, set(files[path]))
                stored = {name: file[name] for file in files.values() for name in file}
                yield Tensors(restored(stored) if single.startswith(INT8) else stored, folder)
            return
    if (folder / SLICES).is_file():
        listed_slices = SliceIndex(folder)
        with ExitStack() as stack:
            opened_files = [stack.enter_context(_opened(path)) for path in listed_slices.files]
            yield Tensors(listed_slices.joined(opened_files), folder)
        return
    published, options = weights_file(folder), options_file(folder)
    if published is not None and options is not None:
        yield Tensors(read_hdf5(published, config_of_options(options)), folder)
        return
    checkpoint = checkpoint_index(folder)
    if checkpoint is None:
        what = f"no weights ({SINGLE}, pytorch_model.bin, their index for shards, or a TensorFlow checkpoint)"
        raise HeedfulError(what, where=folder, remedy="check the path, or fetch the weights")
    stored, notes = read_checkpoint(checkpoint)
    yield Tensors(stored, folder, notes)


def write_tensors(
    folder: Path, tensors: Mapping[str, Tensor], max_shard_bytes: int | None = None, stem: str = STEM
) -> None:
    """Write tensors as one file or, above `max_shard_bytes`, as shards with an index, named as Hugging Face does."""
    shards = _shards(tensors, max_shard_bytes)
    if len(shards) == 1:
        write_tensor_file(folder / f"{stem}.safetensors", shards[0])
        return
    places = {}
    for number, shard in enumerate(shards, start=1):
        name = f"{stem}-{number:05d}-of-{len(shards):05d}.safetensors"
        write_tensor_file(folder / name, shard)
        places.update(dict.fromkeys(shard, name))
    total = sum(tensor.nbytes for tensor in tensors.values())
    write_json(
        folder / f"{stem}{INDEXED}", {"metadata": {"total_size": total}, "weight_map": dict(sorted(places.items()))}
    )


def write_tensor_file(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write one safetensors file; trouble with the disk is an OSError."""
    # The library makes the file for its owner's eyes only; a model folder is as open as any other file.
    path.touch()
    mode = path.stat().st_mode
    try:
        save_file(dict(tensors), path, metadata={"format": "pt"})
    except SafetensorError as error:
        code = re.search(r"os error (\d+)", str(error))
        raise OSError(int(code[1]) if code else 0, str(error), str(path)) from error
    path.chmod(mode)


def _files_of(folder: Path, single: str, index: str) -> dict[Path, set[str] | None]:
    """Each file of weights and the tensors the index says it holds; None where there is no index to say so."""
    if (folder / single).is_file():
        return {folder / single: None}
    return dict(_shards_of_index(folder / index)) if (folder / index).is_file() else {}


def _shards_of_index(index: Path) -> dict[Path, set[str]]:
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise HeedfulError("the index has no weight_map", where=index, remedy=FETCH_AGAIN)
    shards: dict[Path, set[str]] = {}
    for tensor, name in weight_map.items():
        if not isinstance(name, str) or name in ("", ".", "..") or re.search(r"[/\\\0]", name):
            raise HeedfulError(
                f"the index places {tensor} in {name!r}, which is not a file of this folder",
                where=index,
                remedy="do not use this folder if you cannot trust it; an index names files beside itself only",
            )
        shards.setdefault(index.parent / name, set()).add(tensor)
    for path in shards:
        if not path.is_file():
            raise HeedfulError(f"the shard {path.name} is listed but absent", where=index, remedy="fetch that file too")
    return shards


def _check_shard(path: Path, listed: set[str], held: set[str]) -> None:
    if listed == held:
        return
    name = min(listed ^ held)
    if name in listed:
        what = f"the index places {name} in this shard, which does not hold it"
    else:
        what = f"this shard holds {name}, which the index does not place here"
    raise HeedfulError(what, where=path, remedy="index and shards do not belong together: fetch all again")


@dataclass(frozen=True)
class _InSafetensors:
    """A tensor in a safetensors file."""

    name: str
    file: Any
    path: Path

    @property
    def where(self) -> str:
        return f"{self.path}: {self.name}"

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.file.get_slice(self.name).get_shape())

    @property
    def dtype(self) -> str:
        return str(self.file.get_slice(self.name).get_dtype())

    def read(self) -> Tensor:
        with _plain_errors(self.path):
            return self.file.get_tensor(self.name)  # type: ignore[no-any-return]


@contextmanager
def _opened(path: Path) -> Iterator[Mapping[str, StoredTensor]]:
    with _plain_errors(path):
        file = safe_open(path, "pt")
    with file:
        yield {name: _InSafetensors(name, file, path) for name in file.keys()}  # type: ignore[no-untyped-call]  # noqa: SIM118


def _opened_bin(path: Path) -> AbstractContextManager[Mapping[str, StoredTensor]]:
    return nullcontext(read_bin(path))


# The one file, the index of shards, and how a file is opened; the first that is there is taken.
_FORMATS: tuple[tuple[str, str, Callable[[Path], AbstractContextManager[Mapping[str, StoredTensor]]]], ...] = (
    (SINGLE, INDEX, _opened),
    (f"{INT8}.safetensors", f"{INT8}{INDEXED}", _opened),
    ("pytorch_model.bin", "pytorch_model.bin.index.json", _opened_bin),
)


@contextmanager
def _plain_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except SafetensorError as error:
        reason = str(error).removeprefix("Error while deserializing header: ")
        what = f"not a sound safetensors file ({path.stat().st_size} bytes): {reason}"
        raise HeedfulError(what, where=path, remedy=FETCH_AGAIN) from error
    except OSError as error:
        raise HeedfulError(f"cannot read: {error}", where=path, remedy="see that it is a file you may read") from error


def _shards(tensors: Mapping[str, Tensor], limit: int | None) -> list[dict[str, Tensor]]:
    """Fill shards in order; a tensor larger than the limit has a shard to itself."""
    shards: list[dict[str, Tensor]] = [{}]
    size = 0
    for name, tensor in tensors.items():
        if limit is not None and shards[-1] and size + tensor.nbytes > limit:
            shards.append({})
            size = 0
        shards[-1][name] = tensor
        size += tensor.nbytes
    return shards
