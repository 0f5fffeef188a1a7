"""A folder as Google gives it out: `bert_config.json`, `vocab.txt` and a checkpoint of TensorFlow 1.

Its config and its tensors are offered in Hugging Face's words, so that all else need not know where they came from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from heedful.checkpoints.elmo_hdf5 import config_of_options, options_file
from heedful.checkpoints.stored_tensor import StoredTensor
from heedful.checkpoints.tensor_bundle import read_bundle
from heedful.checkpoints.tensorflow_names import names_for, of_optimiser
from heedful.errors import HeedfulError
from heedful.json_files import read_json

CONFIG = "config.json"
GOOGLE_CONFIGS = ("bert_config.json", "albert_config.json")


@dataclass(frozen=True)
class Transposed:
    """A tensor that is stored the other way round."""

    stored: StoredTensor

    @property
    def where(self) -> str:
        return self.stored.where

    @property
    def shape(self) -> tuple[int, ...]:
        return self.stored.shape[::-1]

    @property
    def dtype(self) -> str:
        return self.stored.dtype

    def read(self) -> Tensor:
        """The numbers as a view with its dimensions in reverse order."""
        whole = self.stored.read()
        return whole.permute(*reversed(range(whole.dim())))


def config_file(folder: Path) -> Path | None:
    """The file in which a folder describes its model: Hugging Face's, else Google's, else that of a published ELMo."""
    named = next((folder / name for name in (CONFIG, *GOOGLE_CONFIGS) if (folder / name).is_file()), None)
    return named or options_file(folder)


def config_name(folder: Path) -> str:
    """What the file is called that describes a folder's model, for messages."""
    file = config_file(folder)
    return CONFIG if file is None else file.name


def config_values(folder: Path) -> dict[str, Any]:
    """What `config.json` says, or would say if the folder had one and not a `bert_config.json` of Google's."""
    file = config_file(folder)
    if file is None:
        what = f"no {CONFIG} (or {GOOGLE_CONFIGS[0]}) in the folder"
        raise HeedfulError(what, where=folder, remedy="give a folder in Hugging Face's layout, or in Google's")
    if file == options_file(folder):
        return config_of_options(file)
    values = read_json(file)
    return values if file.name == CONFIG else _in_hugging_face_words(values)


def checkpoint_index(folder: Path) -> Path | None:
    """The index of the one TensorFlow checkpoint in a folder, or None."""
    found = sorted(path for path in folder.glob("*.index") if "ckpt" in path.name)
    if len(found) > 1:
        what = f"several checkpoints: {', '.join(path.stem for path in found)}"
        raise HeedfulError(what, where=folder, remedy="copy the files of the one you want to a folder of its own")
    return found[0] if found else None


def read_checkpoint(index: Path) -> tuple[dict[str, StoredTensor], list[str]]:
    """The tensors of a checkpoint by Hugging Face's names, and notes on what was left aside."""
    bundle = read_bundle(index)
    variables = [name for name in bundle if not of_optimiser(name)]
    table = names_for(variables)
    tensors: dict[str, StoredTensor] = {}
    for variable in variables:
        name, transposed = table.spelled(variable)
        tensors[name] = Transposed(bundle[variable]) if transposed else bundle[variable]
    aside = len(bundle) - len(variables)
    return tensors, [f"{aside} variables of the optimiser are left aside"] if aside else []


def _in_hugging_face_words(values: Mapping[str, Any]) -> dict[str, Any]:
    """Google's fields are Hugging Face's too; what it leaves to the program is said here."""
    width = values.get("hidden_size")
    if values.get("embedding_size", width) == width and "num_hidden_groups" not in values:
        return {**values, "model_type": "bert"}
    said = {**values, "model_type": "albert", "layer_norm_eps": 1e-12}
    if "num_hidden_groups" not in values:  # layers of their own are groups of one layer each
        return {**said, "num_hidden_groups": values.get("num_hidden_layers", 12), "inner_group_num": 1}
    # The program of Google's ALBERT computes GELU by a tanh.
    act = values.get("hidden_act", "gelu")
    return {"inner_group_num": 1, **said, "hidden_act": "gelu_new" if act == "gelu" else act}
