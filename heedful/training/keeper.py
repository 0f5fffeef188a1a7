"""Keeps a run on the disk and brings it back: rank 0 has the disk, the other ranks get their tensors from it.

Of a model in slices every rank writes and reads its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from heedful.checkpoints.own_weights import fill_tensors, weights_of
from heedful.checkpoints.slices import is_sliced
from heedful.config import from_mapping, to_mapping
from heedful.errors import HeedfulError
from heedful.training.checkpoint import REMEDY, read_state, verify
from heedful.training.contract import CarriedState
from heedful.training.distributed import World
from heedful.training.optimiser import Optimiser
from heedful.training.run_folder import RunFolder
from heedful.training.sliced_checkpoint import write_sliced
from heedful.training.state import TrainerState


class Keeper:
    """The checkpoints of one run; `saved` is the step of the newest, `tell` hears what the user should read."""

    def __init__(
        self,
        folder: RunFolder,
        model: nn.Module,
        optimiser: Optimiser,
        world: World,
        tell: Callable[[str], None],
        carried: CarriedState | None = None,
    ) -> None:
        self._folder, self._kept, self._world, self._tell = folder, folder.checkpoints, world, tell
        self._weights, self._moments = weights_of(model), optimiser.moments()
        self._carried = carried
        self._sliced = any(map(is_sliced, self._weights.values()))
        self.saved: int | None = None

    def write(self, state: TrainerState, keep_last: int) -> None:
        """Write the checkpoint of this step, then remove those that are no longer wanted."""

        if self._carried is not None:
            self._carried.share(self._world.sum_tensors)
        try:
            self._write(state, keep_last)
        except HeedfulError as error:
            there = "there is no earlier checkpoint"
            if self.saved is not None:
                there = f"the last checkpoint, {self._kept.path(self.saved).name}, is sound"
            remedy = f"{error.remedy}; then go on with `resume`"
            raise HeedfulError(f"{error.what}; {there}", where=error.where, remedy=remedy) from error
        self.saved = state.step

    def _write(self, state: TrainerState, keep_last: int) -> None:
        stored = to_mapping(state)
        if self._sliced:
            self._world.first(self._put_back)
            parts = {"weights": self._weights, "moments": self._moments, "carried": self._carried_tensors}
            write_sliced(self._kept.path(state.step), {k: v for k, v in parts.items() if v}, stored, self._world)
            self._world.first(lambda: self._kept.keep(keep_last, state.best_step))
            return

        def write() -> None:
            self._put_back()
            self._kept.write(state.step, self._weights, self._moments, stored, self._carried_tensors)
            self._kept.keep(keep_last, state.best_step)

        self._world.first(write)

    def _put_back(self) -> None:
        if self._folder.put_back():
            self._tell("the run's folder was removed: it is made anew, without what was there before")

    def restore(self, fresh: TrainerState) -> TrainerState:
        """The state at the newest sound checkpoint, with weights and moments in place; without any, a `fresh` start."""
        step = self._world.first(self._newest)
        if step is not None:
            read = self._world.each(lambda: self._read(step)) if self._sliced else None
            stored = read[0] if read else self._world.first(lambda: self._read(step))
            fresh = from_mapping(TrainerState, stored, self._kept.path(step))
            self.saved = step
            self._tell(f"resumed from {self._kept.path(step).name}")
        self._share(self._weights, self._moments, self._carried_tensors)
        return fresh

    def restore_weights(self, step: int) -> None:
        """Give the model the weights it had after `step`."""

        def read() -> None:
            self._fill(self._weights, self._kept.path(step) / "weights")

        self._world.first(lambda: verify(self._kept.path(step)))
        (self._world.each if self._sliced else self._world.first)(read)
        self._share(self._weights)

    def _share(self, *kept: Mapping[str, Tensor]) -> None:
        """Give every process what rank 0 has; a process with slices has read its own."""
        if not self._sliced:
            self._world.share_tensors([tensor for tensors in kept for tensor in tensors.values()])

    def _fill(self, tensors: Mapping[str, Tensor], folder: Path) -> None:
        fill_tensors(tensors, folder, REMEDY, self._world.rank, self._world.size)

    @property
    def _carried_tensors(self) -> Mapping[str, Tensor]:
        return {} if self._carried is None else self._carried.tensors

    def _newest(self) -> int | None:
        step, damaged = self._kept.newest_sound()
        for one in damaged:
            self._tell(f"checkpoint {one.name} is damaged and not used: {one.reason}")
        if damaged and step is None:
            raise HeedfulError(
                f"every checkpoint is damaged: {', '.join(one.name for one in damaged)}",
                where=self._kept.folder,
                remedy="start a new run in another folder",
            )
        for one in damaged:
            self._kept.set_aside(one)
        return step

    def _read(self, step: int) -> dict[str, Any]:
        path = self._kept.path(step)
        self._fill(self._weights, path / "weights")
        self._fill(self._moments, path / "moments")
        if self._carried is not None:
            self._fill(self._carried_tensors, path / "carried")
        return read_state(path)
