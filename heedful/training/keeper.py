"""Keeps a run on the disk and brings it back: rank 0 has the disk, the other ranks get their tensors from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from heedful.checkpoints.own_weights import fill_tensors, weights_of
from heedful.config import from_mapping, to_mapping
from heedful.errors import HeedfulError
from heedful.training.checkpoint import REMEDY, read_state, verify
from heedful.training.contract import CarriedState
from heedful.training.distributed import World
from heedful.training.optimiser import Optimiser
from heedful.training.run_folder import RunFolder
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
        self.saved: int | None = None

    def write(self, state: TrainerState, keep_last: int) -> None:
        """Write the checkpoint of this step, then remove those that are no longer wanted."""

        def write() -> None:
            if self._folder.put_back():
                self._tell("the run's folder was removed: it is made anew, without what was there before")
            self._kept.write(state.step, self._weights, self._moments, to_mapping(state), self._carried_tensors)
            self._kept.keep(keep_last, state.best_step)

        if self._carried is not None:
            self._carried.share(self._world.sum_tensors)
        try:
            self._world.first(write)
        except HeedfulError as error:
            there = "there is no earlier checkpoint"
            if self.saved is not None:
                there = f"the last checkpoint, {self._kept.path(self.saved).name}, is sound"
            remedy = f"{error.remedy}; then go on with `resume`"
            raise HeedfulError(f"{error.what}; {there}", where=error.where, remedy=remedy) from error
        self.saved = state.step

    def restore(self, fresh: TrainerState) -> TrainerState:
        """The state at the newest sound checkpoint, with weights and moments in place; without any, a `fresh` start."""
        step = self._world.first(self._newest)
        if step is not None:
            fresh = from_mapping(TrainerState, self._world.first(lambda: self._read(step)), self._kept.path(step))
            self.saved = step
            self._tell(f"resumed from {self._kept.path(step).name}")
        kept = (self._weights, self._moments, self._carried_tensors)
        self._world.share_tensors([tensor for tensors in kept for tensor in tensors.values()])
        return fresh

    def restore_weights(self, step: int) -> None:
        """Give the model the weights it had after `step`."""

        def read() -> None:
            verify(self._kept.path(step))
            fill_tensors(self._weights, self._kept.path(step) / "weights", REMEDY)

        self._world.first(read)
        self._world.share_tensors(list(self._weights.values()))

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
        fill_tensors(self._weights, path / "weights", REMEDY)
        fill_tensors(self._moments, path / "moments", REMEDY)
        if self._carried is not None:
            fill_tensors(self._carried_tensors, path / "carried", REMEDY)
        return read_state(path)
