"""A checkpoint that all processes write together, each the slices it has, on a path that all of them can see."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from torch import Tensor

from heedful.atomic import atomic_folder, atomic_path
from heedful.checkpoints.slices import slice_file, stored_slices, write_slice_index
from heedful.checkpoints.tensors import write_tensor_file
from heedful.errors import HeedfulError
from heedful.json_files import write_json
from heedful.training.checkpoint import file_entry, write_manifest
from heedful.training.distributed import World


def write_sliced(target: Path, parts: Mapping[str, Mapping[str, Tensor]], state: Any, world: World) -> None:
    """Write the checkpoint `target`: it appears when every process has brought its slices to the disk."""
    with ExitStack() as stack:
        folder = Path(world.first(lambda: _begun(stack, target, parts)))
        entries = world.each(lambda: _write_own(folder, parts, world))
        world.first(lambda: _write_lists(folder, parts, state, world.size, entries))
        world.first(stack.close)


def _begun(stack: ExitStack, target: Path, parts: Mapping[str, Any]) -> str:
    folder = stack.enter_context(atomic_folder(target, overwrite=True))
    for name in parts:
        (folder / name).mkdir()
    return str(folder)


def _write_own(folder: Path, parts: Mapping[str, Mapping[str, Tensor]], world: World) -> dict[str, Any]:
    """Write this process's files; gives their entries in the manifest."""
    if not folder.is_dir():
        what = "the folder that rank 0 has made is not there"
        raise HeedfulError(
            what, where=folder, remedy="put the run on a path that all machines share, or do not `shard`"
        )
    entries = {}
    for part, tensors in parts.items():
        file = slice_file(folder / part, world.rank, world.size)
        with atomic_path(file) as temporary:
            write_tensor_file(temporary, stored_slices(tensors, world.rank))
        entries[file.relative_to(folder).as_posix()] = file_entry(file)
    return entries


def _write_lists(
    folder: Path, parts: Mapping[str, Mapping[str, Tensor]], state: Any, size: int, entries: list[dict[str, Any]]
) -> None:
    for part, tensors in parts.items():
        write_slice_index(folder / part, tensors, size)
    write_json(folder / "state.json", state)
    write_manifest(folder, {name: entry for own in entries for name, entry in own.items()})
