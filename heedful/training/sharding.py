"""A model larger than one device: every process has a slice of each parameter, of its gradient and of Adam's moments.

The work is done by PyTorch's FSDP2. The layers of a stack are gathered one after the other as they are computed; all
that stands around them (embeddings, heads) is gathered for the whole of a forward pass, so that an objective may call
any method of the model. Gradients are plain sums, as everywhere here.

Rank 0 keeps the whole model in the memory of its machine beside it, which is evaluated and saved.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from heedful.checkpoints.own_weights import weights_of
from heedful.checkpoints.slices import is_sliced, own_rows, whole
from heedful.errors import HeedfulError
from heedful.training.contract import Objective, carried_by, update_of
from heedful.training.distributed import World, lost_rank
from heedful.training.step import Stepper, Totals


class Sharded:
    """`model` in slices over all processes of a world; rank 0 keeps the one it was given, whole."""

    def __init__(self, model: nn.Module, world: World) -> None:
        self._whole, self._world = model, world
        self.model = copy.deepcopy(model) if world.rank == 0 else model
        self._root = _Root(self.model)
        _slice(self._root, self.model, world)

    def objective(self, objective: Objective) -> Objective:
        """The objective, computed while what stands around the layers is gathered."""
        return _Gathered(objective, self._root)

    def gather(self) -> nn.Module:
        """The model, on rank 0 whole and with the weights of now; every process must call it."""
        kept = weights_of(self._whole) if self._world.rank == 0 else {}
        with torch.no_grad():
            for name, tensor in weights_of(self.model).items():
                full = whole(tensor)
                if name in kept:
                    kept[name].copy_(full)
        return self._whole if self._world.rank == 0 else self.model


class ShardedStepper(Stepper):
    """Takes steps with a model in slices; FSDP2 has added the gradients up when a backward pass ends."""

    def _gradients(self, number: int, micro_batches: Any, totals: Totals) -> dict[str, Tensor] | None:
        found = super()._gradients(number, micro_batches, totals)
        if found is None:  # the other processes wait for this one in the middle of theirs, and cannot be told
            raise HeedfulError(
                f"rank {self._world.rank}: step {number + 1} does not fit into memory",
                remedy="use a higher `accumulate`, or more processes",
            )
        return found

    def _meet(self) -> float:
        """The norm over all slices; each process scales its own."""
        self._world.sum_gradients([p for p in self._parameters if not is_sliced(p)])
        gradients = [p.grad for p in self._parameters if p.grad is not None]
        sliced, plain = ([own_rows(g) for g in gradients if is_sliced(g) == kind] for kind in (True, False))
        squares = self._world.sum([_squares(sliced)])[0] + _squares(plain)
        norm = math.sqrt(squares) if squares >= 0 else math.nan  # not a number is not
        clip = self._config.clip or math.inf
        if norm > clip:
            for gradient in (*sliced, *plain):
                gradient.mul_(clip / (norm + 1e-6))
        return norm


def sharded(model: nn.Module, objective: Objective, world: World) -> Sharded | None:
    """The model in slices; None for a process alone, which has all of them."""
    if update_of(objective) is not None:
        # Its steps need all vectors in one place.
        raise HeedfulError("`shard` has no effect on a model that moves its vectors itself", remedy="leave it out")
    return Sharded(model, world) if world.size > 1 else None


class _Gathered:
    """An objective within the forward pass of the root, with the state that it carries."""

    def __init__(self, objective: Objective, root: nn.Module) -> None:
        self._objective, self._root = objective, root
        self.carried = carried_by(objective)

    def __call__(self, model: nn.Module, micro_batch: Any, /) -> Mapping[str, Tensor]:
        try:
            losses: Mapping[str, Tensor] = self._root(lambda: self._objective(model, micro_batch))
        except RuntimeError as error:
            if not _is_of_the_network(error):
                raise
            raise lost_rank(error) from error
        return losses


class _Root(nn.Module):
    """Whatever is computed with a model, as the forward pass of a module, which is where FSDP2 gathers weights."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, call: Callable[[], Mapping[str, Tensor]]) -> dict[str, Tensor]:
        """What the call gives."""
        return dict(call())


def _slice(root: _Root, model: nn.Module, world: World) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method

    mesh = init_device_mesh(torch.device(world.device).type, (world.size,))
    scalars = {p for p in model.parameters() if p.ndim == 0}  # which cannot be sliced
    for unit in _units(model):
        fully_shard(unit, mesh=mesh, ignored_params=scalars)
        for method in getattr(unit, "also_forward", ()):
            register_fsdp_forward_method(unit, method)
    fully_shard(root, mesh=mesh, ignored_params=scalars)
    for module in root.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)
    model.to(world.device)  # buffers and scalars


def _units(model: nn.Module) -> Iterator[nn.Module]:
    """The layers of all stacks; a recurrent one keeps lists of its weights, and is gathered with what is around."""
    for module in model.modules():
        if type(module) is nn.ModuleList:
            yield from (layer for layer in module if not any(isinstance(m, nn.RNNBase) for m in layer.modules()))


def _squares(tensors: list[Tensor]) -> float:
    return sum(float(tensor.double().square().sum()) for tensor in tensors)


def _is_of_the_network(error: RuntimeError) -> bool:
    return isinstance(error, dist.DistError) or any(name in str(error).lower() for name in ("gloo", "nccl"))
