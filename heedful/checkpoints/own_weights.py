"""Weights under the names that the model itself gives them: of checkpoints, and of models that only we have."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from heedful.checkpoints.slices import first_row, is_sliced, own_rows
from heedful.checkpoints.tensors import FLOATS, Tensors, open_tensors
from heedful.errors import HeedfulError

_REMEDY = "use weights and settings that belong together"


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """The parameters and lasting buffers of a model, each once, as they are and not copied."""
    lasting = model.state_dict(keep_vars=True)
    buffers = {name: buffer for name, buffer in model.named_buffers() if name in lasting}
    return {**dict(model.named_parameters()), **buffers}


def weights_digest(model: nn.Module) -> str:
    """What tells these weights from any others."""
    digest = hashlib.blake2b(digest_size=16)
    for name, tensor in sorted(weights_of(model).items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def fill_tensors(
    tensors: Mapping[str, Tensor], folder: Path, remedy: str = _REMEDY, rank: int = 0, size: int = 1
) -> None:
    """Copy the numbers of the weights in `folder` into tensors of the same names and shapes.

    Of one that lies in slices over `size` processes, process `rank` takes its rows.
    """
    with open_tensors(folder) as stored, torch.no_grad():
        _check_same(stored, tensors, remedy)
        for name, tensor in tensors.items():
            if tensor.is_floating_point() and stored.dtype(name) not in FLOATS:
                what = f"{name} is stored as {stored.dtype(name)}, which is not one of {', '.join(FLOATS)}"
                raise HeedfulError(what, where=folder, remedy=remedy)
        for name, tensor in tensors.items():
            whole = stored.read(name)
            if is_sliced(tensor):
                first = first_row(tensor, rank, size)
                own_rows(tensor).copy_(whole[first : first + len(own_rows(tensor))])
            else:
                tensor.copy_(whole)


def averaged(folders: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of each tensor over several folders of weights of one model."""
    with open_tensors(folders[0]) as first:
        sums = {name: first.read(name).to(torch.float64, copy=True) for name in first}
        kinds = {name: first.read(name).dtype for name in first}
    for folder in folders[1:]:
        with open_tensors(folder) as stored:
            _check_same(stored, sums, _REMEDY)
            for name, total in sums.items():
                total += stored.read(name)
    return {name: (total / len(folders)).to(kinds[name]) for name, total in sums.items()}


def _check_same(stored: Tensors, tensors: Mapping[str, Tensor], remedy: str) -> None:
    if set(stored) != set(tensors):
        name = min(set(stored) ^ set(tensors))
        side = "they lack it" if name in tensors else "the model has no such tensor"
        raise HeedfulError(f"these are weights of another model: {name}: {side}", where=stored.folder, remedy=remedy)
    for name, tensor in tensors.items():
        if stored.shape(name) != tuple(tensor.shape):
            what = f"these are weights of another model: {name} is {stored.shape(name)}, not {tuple(tensor.shape)}"
            raise HeedfulError(what, where=stored.folder, remedy=remedy)
