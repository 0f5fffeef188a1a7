"""Encoders, alone or with the heads of their pretraining, from and to a model folder.

A round trip:

    folder = read_folder("all-MiniLM-L6-v2")
    encoder = load_encoder(folder)
    save_model(encoder, "copy", folder.tokenizer, foreign=folder.config, sentence=folder.sentence)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import nn

from heedful.checkpoints.config_json import config_json
from heedful.checkpoints.families import family_named
from heedful.checkpoints.folder import CONFIG, ModelFolder, with_pieces
from heedful.checkpoints.new_folder import new_folder
from heedful.checkpoints.sentence_transformers import SentenceSettings, write_layout
from heedful.checkpoints.tensors import write_tensors
from heedful.checkpoints.weights import fill_parameters, take_apart, unfilled
from heedful.json_files import write_json
from heedful.models.encoder import Encoder, encoder_of
from heedful.text.tokenizer import Tokenizer


def load_encoder(folder: ModelFolder) -> Encoder:
    """The encoder of a folder in fp32, with a pooler if the folder has one; heads are left aside."""
    with folder.open_weights() as found:
        model = unfilled(folder.model_config.build, folder.weights / CONFIG)
        if not found.holds("encoder.pooler"):
            model.without_pooler()
        fill_parameters(model, found, prefix="encoder.")
    return model.eval()


def load_head(folder: ModelFolder, part: str, build: Callable[[Any], nn.Module]) -> nn.Module:
    """A head of a folder alone, in fp32; the folder must hold it."""
    with folder.open_weights() as found:
        head = build(folder.model_config)
        fill_parameters(head, found, prefix=f"{part}.")
    return head.eval()


def load_for_pretraining(folder: ModelFolder, seed: int) -> nn.Module:
    """The encoder with the heads of its pretraining; what the folder lacks (pooler, head) starts afresh from `seed`."""
    family, config = folder.family, folder.model_config
    with folder.open_weights() as found:
        model = unfilled(lambda: family.pretraining_model(config), folder.weights / CONFIG)
        fill_parameters(model, found)
        there = list(model.state_dict())
        for part in family.parts:
            if not found.holds(part) and any(name.startswith(f"{part}.") for name in there):
                family.initialise(model.get_submodule(part), config, seed)
    return model.eval()


def save_model(
    model: nn.Module,
    path: str | Path,
    tokenizer: Tokenizer | None,
    *,
    foreign: Mapping[str, Any] | None = None,
    sentence: SentenceSettings | None = None,
    max_length: int | None = None,
    max_shard_bytes: int | None = None,
    overwrite: bool = False,
) -> None:
    """Write the folder of an encoder, alone or with the heads of its pretraining, as a whole or not at all.

    `foreign` is the config.json of the folder the model came from. With `sentence` the folder is one of
    sentence-transformers too, with `max_length` as its limit.
    """
    encoder = encoder_of(model)
    config, family = encoder.config, family_named(encoder.config.model_type)
    alone = model is encoder
    tensors = take_apart(model, family.names, "encoder." if alone else "")
    if alone:
        tensors = {name.removeprefix(family.names.left_out): tensor for name, tensor in tensors.items()}
    architecture = family.classes.get("Model" if alone else "PreTraining")
    with new_folder(path, tokenizer, config.vocab_size, overwrite) as folder:
        kept = with_pieces(foreign, tokenizer, config.vocab_size)
        write_json(folder / CONFIG, config_json(config, architecture, kept))
        write_tensors(folder, tensors, max_shard_bytes)
        if sentence is not None:
            write_layout(folder, sentence, max_length, config.width)
