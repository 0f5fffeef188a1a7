"""How much memory a run will need, and how to tell that there was too little."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from heedful.errors import HeedfulError
from heedful.training.contract import Objective
from heedful.training.optimiser import Optimiser

_TOO_LITTLE = re.compile(
    # The last line is what oneDNN says when it finds no room for its code or its numbers. Without a descriptor it is
    # another matter: then it has no code at all for what it was asked.
    r"can't allocate memory|not enough memory|out of memory|bad_alloc"
    r"|could not (create|execute) a (memory object|primitive(?! descriptor))",
    re.I,
)


@dataclass(frozen=True)
class Needs:
    """Bytes of a training step by what holds them; `activations` is None where already the look did not fit."""

    parameters: int
    gradients: int
    moments: int
    activations: int | None

    @property
    def total(self) -> int:
        """All of it together."""
        return self.parameters + self.gradients + self.moments + (self.activations or 0)

    def __str__(self) -> str:
        activations = "more than there is" if self.activations is None else megabytes(self.activations)
        return (
            f"about {megabytes(self.total)} (parameters {megabytes(self.parameters)}, gradients "
            f"{megabytes(self.gradients)}, Adam's moments {megabytes(self.moments)}, activations {activations})"
        )

    def beside(self, free: int | None) -> str:
        """The needs beside the memory that is free, in words; None where nobody knows."""
        there = "how much is free is not known" if free is None else f"{megabytes(free)} are free"
        return f"memory: {self}; {there}{self._too_little(free)}"

    def _too_little(self, free: int | None) -> str:
        """Words for memory that may not suffice, with a size to try."""
        if self.activations is None:
            return ", which may be too little: try twice the `accumulate`, or half the batch"
        if free is None or self.gradients + self.activations <= free:
            return ""
        if (room := free - self.gradients) <= 0:
            return ", which may be too little: try a smaller model"
        return (
            f", which may be too little: try {-(-self.activations // room)} times the `accumulate`, or a smaller batch"
        )


def megabytes(size: float) -> str:
    """A number of bytes for people."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def estimate(model: nn.Module, optimiser: Optimiser, objective: Objective, micro_batch: Any) -> Needs:
    """What a step on a micro-batch needs; activations are what a forward pass is seen to keep for the backward pass."""
    return Needs(
        parameters=sum(p.nbytes for p in model.parameters()) + sum(b.nbytes for b in model.buffers()),
        gradients=sum(p.nbytes for p in optimiser.parameters.values()),
        moments=sum(tensor.nbytes for tensor in optimiser.moments().values()),
        activations=_kept_for_backward(model, objective, micro_batch),
    )


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory was refused: Python's, CUDA's, or the text of torch's CPU allocator."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    return isinstance(error, RuntimeError) and bool(_TOO_LITTLE.search(str(error)))


@contextmanager
def told_plainly(where: object) -> Iterator[None]:
    """Within this block, too little memory for a model is an error that says what to do."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise HeedfulError(
            f"not enough memory for the model, its gradients and Adam's moments: {str(error).splitlines()[0]}",
            where=where,
            remedy="use a smaller model or a machine with more memory",
        ) from error


def does_not_fit(tokens: int, where: object) -> HeedfulError:
    """The error that not even one example fits, with a size to try."""
    return HeedfulError(
        f"a single example of {tokens:,} tokens does not fit into memory",
        where=where,
        remedy=f"use sequences of {max(1, tokens // 2):,} tokens, a smaller model or more memory",
    )


def drop_failed_backward(device: str = "cpu") -> None:
    """Free the graph of a backward pass that failed: autograd's queue holds on to it until another pass is made."""
    torch.zeros((), device=device, requires_grad=True).mul(1).backward()  # type: ignore[no-untyped-call]


def _kept_for_backward(model: nn.Module, objective: Objective, micro_batch: Any) -> int | None:
    own = {p.untyped_storage()._cdata for p in model.parameters()}  # storages by their address, on any device
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in own:
            kept[storage._cdata] = storage.nbytes()
        return tensor.detach()  # itself, it could hold the very graph that holds it, and both would stay for ever

    buffers = [buffer.clone() for buffer in model.buffers()]
    try:
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            losses = objective(model, micro_batch)  # holds the graph, so that no storage is counted at a used address
        del losses
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        return None
    finally:
        with torch.no_grad():  # a look leaves no trace in running statistics
            for buffer, before in zip(model.buffers(), buffers, strict=True):
                buffer.copy_(before)
    return sum(kept.values())
