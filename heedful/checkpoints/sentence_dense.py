"""The Dense modules of sentence-transformers: a linear layer and an activation on the vectors of sentences."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.errors import HeedfulError
from heedful.json_files import read_json, write_json

if TYPE_CHECKING:
    from torch import nn

CONFIG = "config.json"
# Of torch's classes, by the names under which they are written; nothing is imported by such a name.
_ACTIVATIONS = ("Tanh", "Identity", "GELU", "ReLU", "SiLU", "Sigmoid")


@dataclass(frozen=True)
class Dense:
    """A Dense module that lies in a folder."""

    path: Path
    inputs: int
    outputs: int
    bias: bool
    activation: str  # the name of torch's class

    def load(self) -> nn.Module:
        """The layer with its weights; torch is needed from here on."""
        from torch import nn

        from heedful.checkpoints.own_weights import fill_tensors

        linear = nn.Linear(self.inputs, self.outputs, bias=self.bias)
        fill_tensors({f"linear.{name}": tensor for name, tensor in linear.state_dict().items()}, self.path)
        return nn.Sequential(linear, getattr(nn, self.activation)()).eval().requires_grad_(False)

    def copy_to(self, folder: Path) -> None:
        """Write its files into another folder, which is there."""
        for file in self.path.iterdir():
            if file.is_file():
                shutil.copyfile(file, folder / file.name)


def read_dense(folder: Path) -> Dense:
    """What a folder says of its Dense module."""
    where = folder / CONFIG
    config = read_json(where)
    name = str(config.get("activation_function", "torch.nn.modules.activation.Tanh")).rpartition(".")[2]
    if name not in _ACTIVATIONS:
        remedy = f"the activations are {', '.join(_ACTIVATIONS)}"
        raise HeedfulError(f"the activation {name} is not supported", where=where, remedy=remedy)
    sizes = [config.get(key) for key in ("in_features", "out_features")]
    if not all(isinstance(size, int) and size > 0 for size in sizes):
        what = f"in_features and out_features are {sizes[0]!r} and {sizes[1]!r}"
        raise HeedfulError(what, where=where, remedy="give numbers above zero")
    return Dense(folder, int(sizes[0] or 0), int(sizes[1] or 0), config.get("bias", True) is not False, name)


def write_dense(folder: Path, linear: nn.Linear) -> None:
    """Make the folder of a Dense module without an activation."""
    from heedful.checkpoints.tensors import write_tensors

    folder.mkdir()
    sizes = {"in_features": linear.in_features, "out_features": linear.out_features}
    activation = "torch.nn.modules.linear.Identity"
    write_json(folder / CONFIG, {**sizes, "bias": linear.bias is not None, "activation_function": activation})
    write_tensors(folder, {f"linear.{name}": tensor.contiguous() for name, tensor in linear.state_dict().items()})
