"""A folder in any format that can be read becomes one in Hugging Face's layout, tensor by tensor.

    convert("chinese_L-12_H-768_A-12", "bert-base-chinese")

Nothing is computed: the numbers are those of the source, in fp32, under the names of the family's table. So every head
that the table knows comes along, whether anything here looks at it or not.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heedful.checkpoints.config_json import CLASSIFIER, config_json
from heedful.checkpoints.encoder_folder import load_encoder
from heedful.checkpoints.family import Family
from heedful.checkpoints.folder import CONFIG, ModelFolder, read_folder, with_pieces
from heedful.checkpoints.int8_scheme import KEY, Int8Scheme
from heedful.checkpoints.int8_tensors import STEM as INT8
from heedful.checkpoints.int8_tensors import in_int8
from heedful.checkpoints.names import renamed
from heedful.checkpoints.new_folder import new_folder
from heedful.checkpoints.sentence_transformers import write_layout
from heedful.checkpoints.task_folder import TASK
from heedful.checkpoints.tensors import STEM, write_tensors
from heedful.checkpoints.weights import WeightSource
from heedful.config import to_mapping
from heedful.json_files import write_json
from heedful.models.encoder import Encoder
from heedful.models.int8_parts import ENCODER, stored_in_int8

CLASSIFIER_WEIGHT = "classifier.weight"
# Hugging Face's own limit for a file of weights.
SHARD_BYTES = 5 * 10**9


@dataclass(frozen=True)
class Converted:
    """What was written."""

    path: Path
    architecture: str | None  # the class of Hugging Face that takes all of it
    tensors: int
    parameters: int
    notes: tuple[str, ...]  # what is unusual about the source, and what was left aside


def convert(
    source: str | Path,
    target: str | Path,
    *,
    overwrite: bool = False,
    force: bool = False,
    max_shard_bytes: int | None = SHARD_BYTES,
    int8: Int8Scheme | None = None,
) -> Converted:
    """Write the model of a folder as a folder of Hugging Face's, as a whole or not at all.

    `force` takes a tokenizer that has far fewer pieces than the model has rows. With `int8` the encoder's matrices are
    stored so, which only we read.
    """
    folder = read_folder(source, force)
    encoder = load_encoder(folder)  # refuses what is missing, misshapen or damaged before anything is written
    with folder.open_weights() as found:
        tensors = _tensors(found)
        size = sum(tensor.numel() for tensor in tensors.values())
        if int8 is not None:
            tensors = in_int8(tensors, _int8_names(found, encoder, int8))
        architecture = _architecture(folder, found)
        described = {**folder.config, **_labels(folder, found)}
        _write(folder, Path(target), tensors, architecture, described, overwrite, max_shard_bytes, int8)
    return Converted(Path(target), architecture, len(tensors), size, folder.notes)


def _in_class(found: WeightSource) -> Mapping[str, str]:
    return found.table.class_spelling([found.table.respell(name) for name in found.tensors])


def _int8_names(found: WeightSource, encoder: Encoder, int8: Int8Scheme) -> dict[str, bool]:
    """The tensors on disk that are to be in int8, and whether each lies there transposed."""
    kept = {name.removeprefix(f"{ENCODER}.") for name in int8.float32}
    ours = [f"{ENCODER}.{name}" for name in stored_in_int8(encoder, kept)]
    table, in_class = found.table, _in_class(found)
    return {renamed(theirs, in_class): table.is_transposed(name) for name in ours for theirs in table.on_disk(name)}


def _tensors(found: WeightSource) -> dict[str, Tensor]:
    """All that the table knows, but for what only repeats or counts."""
    table, in_class = found.table, _in_class(found)
    return {
        renamed(name, in_class): found.tensors.read(on_disk).to(torch.float32).contiguous().clone()
        for name, on_disk in found.spelled.items()
        if name not in table.copies and name not in table.counters
    }


def _architecture(folder: ModelFolder, found: WeightSource) -> str | None:
    """The class that the folder names, if it is one of its family's; else the one that has the heads it holds."""
    classes = folder.family.classes
    named = folder.config.get("architectures")
    if isinstance(named, list) and named and named[0] in classes.values():
        return str(named[0])
    heads = ("mlm", "nsp", "classifier", "span", *folder.family.token_heads)
    return classes.get(_kind({part for part in heads if found.holds(part)}, folder.family))


def _labels(folder: ModelFolder, found: WeightSource) -> dict[str, Any]:
    """The labels of a classifier whose config has none: Google's does not even say how many there are."""
    if "id2label" in folder.config or CLASSIFIER_WEIGHT not in found.spelled:
        return {}
    rows = found.tensors.shape(found.spelled[CLASSIFIER_WEIGHT])[0]
    return {"id2label": {str(number): f"LABEL_{number}" for number in range(rows)}}


def _kind(held: set[str], family: Family[Any]) -> str:
    if "classifier" in held:
        return CLASSIFIER
    if "span" in held:
        return "QuestionAnswering"
    if "mlm" in held:
        return "PreTraining" if "nsp" in held or "nsp" not in family.parts else "MaskedLM"
    return next((part for part in family.token_heads if part in held), "Model")


def _write(
    folder: ModelFolder,
    target: Path,
    tensors: dict[str, Tensor],
    architecture: str | None,
    described: Mapping[str, Any],
    overwrite: bool,
    max_shard_bytes: int | None,
    int8: Int8Scheme | None,
) -> None:
    config = folder.model_config
    with new_folder(target, folder.tokenizer, config.vocab_size, overwrite) as written:
        kept = with_pieces(described, folder.tokenizer, config.vocab_size)
        scheme = {} if int8 is None else {KEY: to_mapping(int8)}
        write_json(written / CONFIG, {**config_json(config, architecture, kept), **scheme})
        write_tensors(written, tensors, max_shard_bytes, STEM if int8 is None else INT8)
        if folder.sentence is not None:
            write_layout(written, folder.sentence, folder.max_length, config.width)
        if (folder.weights / TASK).is_file():
            shutil.copyfile(folder.weights / TASK, written / TASK)
