"""Checkpoints: folders `step-000123` that are whole or not there, and known to be sound before they are used.

    step-000123/
      weights/model.safetensors     the model's parameters and buffers
      moments/model.safetensors     the optimiser's state
      carried/model.safetensors     what the objective carries from step to step, if it does
      state.json                    counters
      manifest.json                 size and sha256 of each of the above, and of this list itself

A model in slices has slices.json and slices-00001-of-00004.safetensors … in place of each model.safetensors, one file a
process. Whatever wrote a checkpoint, any number of processes can go on from it, with slices or without.

There is no state of a random generator to keep: a step's dropout comes from (seed, step, micro-batch, rank) alone.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from heedful.atomic import atomic_folder
from heedful.checkpoints.tensors import write_tensors
from heedful.errors import HeedfulError
from heedful.json_files import read_json, write_json

MANIFEST = "manifest.json"
_NAME = re.compile(r"step-(\d{6,})")
_LEFT_OVER = re.compile(r"\.step-.*\.(tmp|old)")
REMEDY = "an earlier checkpoint or a new run is the way on"


@dataclass(frozen=True)
class Damaged:
    """A checkpoint that must not be used, and why."""

    name: str
    reason: str


class Checkpoints:
    """The checkpoints of a run, by the number of steps done."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, step: int) -> Path:
        """Where the checkpoint of a step is or would be."""
        return self.folder / f"step-{step:06d}"

    def steps(self) -> list[int]:
        """The steps there are checkpoints of, in order."""
        if not self.folder.is_dir():
            return []
        names = (_NAME.fullmatch(path.name) for path in self.folder.iterdir())
        return sorted(int(name[1]) for name in names if name)

    def write(
        self,
        step: int,
        weights: Mapping[str, Tensor],
        moments: Mapping[str, Tensor],
        state: Any,
        carried: Mapping[str, Tensor] | None = None,
    ) -> Path:
        """Write a checkpoint; it appears when all of it is on the disk."""
        parts = {"weights": weights, "moments": moments, **({"carried": carried} if carried else {})}
        with atomic_folder(self.path(step), overwrite=True) as folder:
            for name, tensors in parts.items():
                (folder / name).mkdir()
                stored = {key: tensor.detach().cpu().contiguous() for key, tensor in tensors.items()}
                write_tensors(folder / name, stored)
            write_json(folder / "state.json", state)
            write_manifest(folder)
        return self.path(step)

    def keep(self, last: int, best: int | None) -> None:
        """Remove all but the `last` newest checkpoints and the best."""
        for step in self.steps()[:-last]:
            if step != best:
                # Under another name first: a process killed half-way leaves no half checkpoint behind.
                gone = self.path(step).with_name(f".{self.path(step).name}.old")
                self.path(step).replace(gone)
                shutil.rmtree(gone, ignore_errors=True)

    def sweep(self) -> None:
        """Remove what a killed process left half written."""
        if self.folder.is_dir():
            for path in self.folder.iterdir():
                if _LEFT_OVER.fullmatch(path.name):
                    shutil.rmtree(path, ignore_errors=True)

    def newest_sound(self) -> tuple[int | None, list[Damaged]]:
        """The newest step whose checkpoint is sound, and the damaged ones passed over on the way to it."""
        damaged = []
        for step in reversed(self.steps()):
            try:
                verify(self.path(step))
            except HeedfulError as error:
                damaged.append(Damaged(self.path(step).name, error.what))
            else:
                return step, damaged
        return None, damaged

    def set_aside(self, damaged: Damaged) -> None:
        """Move a damaged checkpoint out of the row without losing it."""
        aside = self.folder / f"damaged-{damaged.name}"
        shutil.rmtree(aside, ignore_errors=True)
        (self.folder / damaged.name).replace(aside)


def verify(checkpoint: Path) -> None:
    """Refuse a checkpoint unless it holds exactly what was written, byte for byte."""
    path = checkpoint / MANIFEST
    try:
        text = path.read_text(encoding="ascii")
        listed = json.loads(text)["files"]
        sound = text == _dumped(listed)
        files = {file: (checkpoint / file, entry["bytes"], entry["sha256"]) for file, entry in listed.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise HeedfulError(f"the manifest cannot be read ({error})", where=path, remedy=REMEDY) from error
    if not sound:
        raise HeedfulError("the manifest has been altered", where=path, remedy=REMEDY)
    if set(files) != set(_files(checkpoint)):
        extra = ", ".join(sorted(set(files) ^ set(_files(checkpoint))))
        raise HeedfulError(f"missing or unknown: {extra}", where=checkpoint, remedy=REMEDY)
    for name, (file, size, digest) in files.items():
        if file.stat().st_size != size or _sha256(file) != digest:
            raise HeedfulError(f"{name} is not what was written", where=file, remedy=REMEDY)


def read_state(checkpoint: Path) -> dict[str, Any]:
    """The counters of a verified checkpoint."""
    return read_json(checkpoint / "state.json")


def _files(checkpoint: Path) -> list[str]:
    return sorted(
        path.relative_to(checkpoint).as_posix()
        for path in checkpoint.rglob("*")
        if path.is_file() and path != checkpoint / MANIFEST
    )


def file_entry(path: Path) -> dict[str, Any]:
    """What the manifest says of a file."""
    return {"bytes": path.stat().st_size, "sha256": _sha256(path)}


def write_manifest(folder: Path, known: Mapping[str, Any] | None = None) -> None:
    """List all files of a checkpoint; of those `known` the entries are there already."""
    known = known or {}
    entries = {name: known.get(name) or file_entry(folder / name) for name in _files(folder)}
    (folder / MANIFEST).write_text(_dumped(entries), encoding="ascii")


def _dumped(files: Any) -> str:
    listing = json.dumps(files, sort_keys=True)
    own = hashlib.sha256(listing.encode()).hexdigest()
    return json.dumps({"files": files, "sha256": own}, indent=2, sort_keys=True) + "\n"


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
