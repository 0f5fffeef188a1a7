"""Weights in int8 on disk: a matrix X of whole numbers, and beside it X_scale in float32, one for each output.

X · X_scale is the matrix in float32, exactly. A file of such weights has a name of its own, so that a program that
does not know of scales finds no weights and not wrong ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.checkpoints.stored_tensor import FETCH_AGAIN, StoredTensor
from heedful.errors import HeedfulError
from heedful.nn.int8 import rounded_weights

STEM = "model.int8"  # of the files
SCALE = "_scale"


def in_int8(tensors: Mapping[str, Tensor], transposed: Mapping[str, bool]) -> dict[str, Tensor]:
    """Tensors with some matrices as numbers and scales; `transposed` names these and tells whose rows are inputs."""
    found: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if name not in transposed:
            found[name] = tensor
            continue
        pair = rounded_weights(tensor.T if transposed[name] else tensor)
        numbers, scales = (part.T if transposed[name] else part for part in pair)
        found[name], found[name + SCALE] = numbers.contiguous(), scales.contiguous()
    return found


@dataclass(frozen=True)
class _Restored:
    """A matrix that is stored as numbers and scales."""

    numbers: StoredTensor
    scales: StoredTensor

    @property
    def where(self) -> str:
        return self.numbers.where

    @property
    def shape(self) -> tuple[int, ...]:
        return self.numbers.shape

    @property
    def dtype(self) -> str:
        return "F32"

    def read(self) -> Tensor:
        scales = self.scales.read()
        if not bool((torch.isfinite(scales) & (scales > 0)).all()):
            raise HeedfulError("a scale is not a number above zero", where=self.scales.where, remedy=FETCH_AGAIN)
        return self.numbers.read().to(torch.float32) * scales


def restored(stored: Mapping[str, StoredTensor]) -> dict[str, StoredTensor]:
    """The tensors of int8 files as they are in float32; numbers or scales alone are refused."""
    found: dict[str, StoredTensor] = {}
    for name, tensor in stored.items():
        if tensor.dtype == "I8":
            found[name] = _Restored(tensor, _scales_of(name, stored))
        elif name.endswith(SCALE):
            numbers = stored.get(name.removesuffix(SCALE))
            if numbers is None or numbers.dtype != "I8":
                raise HeedfulError("scales without their matrix", where=tensor.where, remedy=FETCH_AGAIN)
        else:
            found[name] = tensor
    return found


def _scales_of(name: str, stored: Mapping[str, StoredTensor]) -> StoredTensor:
    numbers, scales = stored[name], stored.get(name + SCALE)
    if scales is None:
        raise HeedfulError(f"the matrix has no scales {name + SCALE}", where=numbers.where, remedy=FETCH_AGAIN)
    rows, columns = numbers.shape if len(numbers.shape) == 2 else (0, 0)
    if scales.dtype != "F32" or scales.shape not in ((rows, 1), (1, columns)):
        what = f"scales of {scales.dtype} {list(scales.shape)} for a matrix of {list(numbers.shape)}"
        raise HeedfulError(what, where=scales.where, remedy=FETCH_AGAIN)
    return scales
