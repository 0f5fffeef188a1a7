"""What a model carries from batch to batch while it is trained: the state of an LSTM, the memory of XLNet.

A batch has lanes, one for each row of text that goes on in the next batch, and each tensor has a row for each lane.
What a step leaves counts only when the step has been taken: one that is tried again, in smaller micro-batches because
memory did not suffice, begins from the same state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor


class Carried:
    """The state of all lanes, by name: (lanes, …) each. Every process has all of it and moves on its own lanes."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self.tensors = dict(tensors)
        self._left: list[tuple[Tensor, Mapping[str, Tensor]]] = []  # by the micro-batches of the step in progress
        self._own: Tensor | None = None  # the lanes that this process has moved on since all were shared

    def to(self, device: str) -> None:
        """Move it to where the model is."""
        self.tensors = {name: tensor.to(device) for name, tensor in self.tensors.items()}

    def rows(self, lanes: Tensor, fresh: Tensor) -> dict[str, Tensor]:
        """The state of some lanes (b,), zero for those that are `fresh` (b,): their text begins here."""
        rows = {name: tensor[lanes] for name, tensor in self.tensors.items()}  # copies
        for tensor in rows.values():
            tensor[fresh] = 0
        return rows

    def leave(self, lanes: Tensor, after: Mapping[str, Tensor]) -> None:
        """What these lanes are to go on from, once the step is taken."""
        self._left.append((lanes, {name: tensor.detach() for name, tensor in after.items()}))

    def drop(self) -> None:
        """Forget what was left: the step was not taken."""
        self._left.clear()

    def keep(self, finite: bool = True) -> None:
        """The step was taken, and what was left counts; where it was not `finite`, its lanes begin anew."""
        for lanes, after in self._left:
            for name, tensor in self.tensors.items():
                tensor[lanes] = after[name].to(tensor.dtype) if finite else torch.zeros_like(tensor[lanes])
        if self._left:
            self._own = torch.cat([lanes for lanes, _ in self._left])
        self._left.clear()

    def share(self, add_up: Callable[[Sequence[Tensor]], None]) -> None:
        """Give every process all lanes; `add_up` sums tensors over all of them, in place."""
        if self._own is None:
            return
        for tensor in self.tensors.values():
            others = torch.ones(len(tensor), dtype=torch.bool, device=tensor.device)
            others[self._own] = False
            tensor[others] = 0
        add_up(list(self.tensors.values()))
        self._own = None
