"""ELMo as it was published: `options.json` and an HDF5 file of weights, read under our names and in our shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heedful.checkpoints.stored_tensor import FETCH_AGAIN
from heedful.errors import HeedfulError
from heedful.json_files import read_json

_RNN = "RNN_{}/RNN/MultiRNNCell/Cell{}/LSTMCell"


@dataclass(frozen=True)
class Converted:
    """A tensor of ours made of one or more datasets."""

    where: str
    shape: tuple[int, ...]
    read: Callable[[], Tensor]
    dtype: str = "F32"


def options_file(folder: Path) -> Path | None:
    """The options of the ELMo in a folder, beside its weights; None where there is none."""
    found = sorted(folder.glob("*options.json"))
    return found[0] if found and weights_file(folder) is not None else None


def weights_file(folder: Path) -> Path | None:
    """The HDF5 file with the weights in its name, or None."""
    found = sorted(folder.glob("*weights.hdf5"))
    if len(found) > 1:
        what = f"several files of weights: {', '.join(path.name for path in found)}"
        raise HeedfulError(what, where=folder, remedy="copy the one you want to a folder of its own")
    return found[0] if found else None


def config_of_options(file: Path) -> dict[str, Any]:
    """What config.json would say of the model that `options.json` describes."""
    values = read_json(file)
    try:
        lstm, cnn = values["lstm"], values["char_cnn"]
        if lstm["cell_clip"] != lstm["proj_clip"]:
            what = f"cell_clip {lstm['cell_clip']} and proj_clip {lstm['proj_clip']} differ"
            raise HeedfulError(what, where=file, remedy="use a model in which they are the same")
        if cnn["n_characters"] != 262:
            what = f"n_characters is {cnn['n_characters']}"
            raise HeedfulError(what, where=file, remedy="262 is supported, which is that of a trained model")
        return {
            "model_type": "elmo",
            "character_width": cnn["embedding"]["dim"],
            "filters": [list(pair) for pair in cnn["filters"]],
            "highways": cnn.get("n_highway", 0),
            "characters_per_word": cnn["max_characters_per_token"],
            "activation": cnn["activation"],
            "projection": lstm["projection_dim"],
            "lstm_width": lstm["dim"],
            "layers": lstm["n_layers"],
            "clip": float(lstm["cell_clip"]),
            "skip": lstm["use_skip_connections"],
        }
    except (KeyError, TypeError) as error:
        what = f"not the options of an ELMo: {error} is missing or wrong"
        raise HeedfulError(what, where=file, remedy=FETCH_AGAIN) from error


def read_hdf5(file: Path, options: Mapping[str, Any]) -> dict[str, Converted]:
    """The tensors of an ELMo by our names, each a copy; a dataset that is missing is named."""
    try:
        import h5py
    except ImportError:
        raise HeedfulError("HDF5 files need h5py", where=file, remedy="pip install 'heedful[elmo]'") from None
    arrays: dict[str, Tensor] = {}

    def keep(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            arrays[name] = torch.from_numpy(item[()]).float()

    try:
        with h5py.File(file, "r") as opened:
            opened.visititems(keep)
    except (OSError, RuntimeError, TypeError) as error:
        raise HeedfulError(f"not a readable HDF5 file: {error}", where=file, remedy=FETCH_AGAIN) from error
    return {f"encoder.{name}": made for name, made in _made(_Datasets(file, arrays), options).items()}


class _Datasets:
    """The datasets of a file, asked for by name."""

    def __init__(self, file: Path, arrays: Mapping[str, Tensor]) -> None:
        self.file, self.arrays = file, arrays

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.arrays:
            raise HeedfulError(f"the weights lack {name}", where=self.file, remedy=FETCH_AGAIN)
        return self.arrays[name]

    def made(self, names: str, tensor: Tensor) -> Converted:
        """What was made of the datasets of these names."""
        return Converted(f"{self.file}: {names}", tuple(tensor.shape), lambda: tensor)


def _made(found: _Datasets, options: Mapping[str, Any]) -> dict[str, Converted]:
    tensors: dict[str, Tensor] = {}
    characters = found["char_embed"]
    tensors["embeddings.character.weight"] = torch.cat([torch.zeros_like(characters[:1]), characters])
    for number in range(len(options["filters"])):
        kernel = found[f"CNN/W_cnn_{number}"]  # (1, width, in, out)
        tensors[f"embeddings.filters.{number}.weight"] = kernel.squeeze(0).permute(2, 1, 0)
        tensors[f"embeddings.filters.{number}.bias"] = found[f"CNN/b_cnn_{number}"]
    for number in range(options["highways"]):
        for ours, theirs in (("gate", "carry"), ("transform", "transform")):
            name = f"embeddings.highways.{number}.{ours}"
            tensors[f"{name}.weight"] = found[f"CNN_high_{number}/W_{theirs}"].T
            tensors[f"{name}.bias"] = found[f"CNN_high_{number}/b_{theirs}"]
    tensors["embeddings.projection.weight"] = found["CNN_proj/W_proj"].T
    tensors["embeddings.projection.bias"] = found["CNN_proj/b_proj"]
    for layer in range(options["layers"]):
        tensors |= _lstm(found, layer, options["projection"])
    return {name: found.made(name, tensor.contiguous()) for name, tensor in tensors.items()}


def _lstm(found: _Datasets, layer: int, inputs: int) -> dict[str, Tensor]:
    """The two directions of a layer; TensorFlow adds one to the forget gate's bias when it computes."""
    weights, biases, projections = [], [], []
    for direction in (0, 1):
        cell = _RNN.format(direction, layer)
        weights.append(_gates(found[f"{cell}/W_0"]))
        bias = _gates(found[f"{cell}/B"]).clone()
        bias.chunk(4)[1].add_(1.0)
        biases.append(bias)
        projections.append(found[f"{cell}/W_P_0"])
    both = torch.stack(weights)
    return {
        f"layers.{layer}.input": both[:, :inputs],
        f"layers.{layer}.recurrent": both[:, inputs:],
        f"layers.{layer}.bias": torch.stack(biases),
        f"layers.{layer}.projection": torch.stack(projections),
    }


def _gates(tensor: Tensor) -> Tensor:
    """From the order i, new, f, o to i, f, o, new."""
    i, new, f, o = tensor.chunk(4, dim=-1)
    return torch.cat([i, f, o, new], dim=-1)
