"""A device that is not the CPU, made in Python: its numbers lie in memory as ever, but mixing both raises.

Every operation on it is done by the CPU on the tensors inside. As on a GPU, a number without dimensions may come from
the CPU, and copies go from one to the other; anything else that is handed both is refused.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "stand_in"
_COPIES = (torch.ops.aten.copy_, torch.ops.aten._to_copy, torch.ops.aten.to)


class OnStandIn(Tensor):
    """A tensor of the device; `inside` is the one that the CPU computes with."""

    inside: Tensor

    @staticmethod
    def __new__(cls, inside: Tensor) -> OnStandIn:
        return torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined, no-any-return]
            cls,
            inside.size(),
            strides=inside.stride(),
            storage_offset=inside.storage_offset(),
            dtype=inside.dtype,
            device=torch.device(NAME, 0),
        )

    def __init__(self, inside: Tensor) -> None:
        self.inside = inside

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"OnStandIn({self.inside})"

    def tolist(self) -> Any:  # torch has none for a subclass
        return self.inside.tolist()

    @classmethod
    def __torch_dispatch__(cls, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _computed(operation, args, kwargs or {})


class _Backend:
    """What torch asks of the module of a device."""

    def __init__(self) -> None:
        self.seeds: list[int] = []  # those it was given
        self.rounded: list[torch.dtype] = []  # those of its linear layers in mixed precision

    def is_initialized(self) -> bool:
        return True

    def is_available(self) -> bool:
        return True

    def current_device(self) -> int:
        return 0

    def device_count(self) -> int:
        return 1

    def _is_in_bad_fork(self) -> bool:
        return False

    def manual_seed_all(self, seed: int) -> None:
        self.seeds.append(seed)

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16]


backend = _Backend()
_libraries: list[torch.library.Library] = []  # what they register ends with them


def install() -> str:
    """Make the device known to this process, once; gives its name."""
    _setup_privateuseone_for_python_backend(NAME, backend)
    every, aten = torch.library.Library("_", "IMPL"), torch.library.Library("aten", "IMPL")
    _libraries.extend([every, aten])
    every.fallback(_made, "PrivateUse1")
    every.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
    aten.impl("_copy_from", _copy_from, "PrivateUse1")
    for name in ("default", "start", "start_step"):  # torch's own would let a tensor grow, which these cannot
        operation = getattr(torch.ops.aten.arange, name)
        aten.impl(operation, partial(_made, operation), "PrivateUse1")
    aten.impl("linear", _linear_in_mixed_precision, "AutocastPrivateUse1")
    return f"{NAME}:0"


def _made(operation: Any, *args: Any, **kwargs: Any) -> Any:
    return _computed(operation, args, kwargs)


def _computed(operation: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    leaves = tree_leaves((args, kwargs))
    ours = {id(leaf.inside): leaf for leaf in leaves if isinstance(leaf, OnStandIn)}
    stray = [leaf for leaf in leaves if isinstance(leaf, Tensor) and not isinstance(leaf, OnStandIn) and leaf.dim()]
    if ours and stray and operation.overloadpacket not in _COPIES:
        shape = tuple(stray[0].shape)
        raise RuntimeError(f"{operation}: tensors on {NAME} and on the CPU, such as one of shape {shape}")
    found = operation(*tree_map(_inside, args), **tree_map(_inside, kwargs))
    if any(isinstance(leaf, torch.device) and leaf.type == "cpu" for leaf in leaves):
        return found
    return tree_map(lambda x: _wrapped(x, ours) if isinstance(x, Tensor) else x, found)


def _wrapped(found: Tensor, ours: dict[int, OnStandIn]) -> OnStandIn:
    """What was written in its place stays the tensor it was."""
    return ours[id(found)] if id(found) in ours else OnStandIn(found)


def _inside(value: Any) -> Any:
    if isinstance(value, torch.device):
        return torch.device("cpu")
    return value.inside if isinstance(value, OnStandIn) else value


def _copy_from(source: Tensor, target: Tensor, non_blocking: bool = False) -> Tensor:
    _inside(target).copy_(_inside(source))
    return target


def _linear_in_mixed_precision(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    kind = torch.get_autocast_dtype(NAME)
    backend.rounded.append(kind)
    mixed = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)
    with torch._C._ExcludeDispatchKeyGuard(mixed):
        return torch.nn.functional.linear(x.to(kind), weight.to(kind), None if bias is None else bias.to(kind))
