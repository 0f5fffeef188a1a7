"""The weights of a model folder: opened with all names understood, and what is unusual about them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from heedful.checkpoints.family import Family
from heedful.checkpoints.tensorflow_folder import config_name
from heedful.checkpoints.tensors import has_tensors, open_tensors
from heedful.checkpoints.weights import WeightSource, source
from heedful.errors import HeedfulError
from heedful.models.encoder import EncoderConfig

ONNX = "model.onnx"  # an exported folder has it instead of weights, others may have it beside them


def is_exported(folder: Path) -> bool:
    """Whether a folder has nothing but a model for ONNX Runtime."""
    return (folder / ONNX).is_file() and not has_tensors(folder)


@contextmanager
def open_weights(folder: Path, family: Family[Any], config: EncoderConfig) -> Iterator[WeightSource]:
    """Open the weights of a folder for the time of a `with` block, after a check of the names and of their layers."""
    if is_exported(folder):
        what = f"this folder has {ONNX} and no weights, which is not enough here"
        raise HeedfulError(what, where=folder, remedy="use the folder that it was exported from")
    with open_tensors(folder) as tensors:
        found = source(tensors, family.names)
        _check_layers(found, config.stored_layers, folder)
        yield found


def weight_notes(folder: Path, family: Family[Any], config: EncoderConfig) -> list[str]:
    """What is accepted in the weights although it is unusual: absent parts, repetitions, old names, other precision."""
    if is_exported(folder):
        return [f"{ONNX} computes, as it was exported"]
    names = family.names
    with open_weights(folder, family, config) as found:
        absent = [name for part, name in family.parts.items() if not found.holds(part)]
        notes = [*found.notes(), *([f"absent: {', '.join(absent)}"] if absent else [])]
        notes += [f"{copy} repeats {of}" for copy, of in names.copies.items() if copy in found.spelled]
        notes += [f"{name} only counts and is not needed" for name in names.counters if name in found.spelled]
        old = sum(name.endswith((".gamma", ".beta")) for name in found.tensors)
        notes += [f"old names: {old} tensors of norms are called gamma or beta"] if old else []
        kinds = sorted({found.tensors.dtype(name) for name in found.tensors} & {"F16", "BF16", "F64"})
        notes += [f"stored as {' and '.join(kinds)}, computed in F32"] if kinds else []
    return notes


def _check_layers(found: WeightSource, wanted: int, folder: Path) -> None:
    pattern = found.table.layers
    if pattern is None:
        return
    layers = {match[1] for match in map(pattern.match, found.spelled) if match}
    if len(layers) != wanted:
        config = config_name(folder)
        what = f"{config} asks for {wanted} layers, the weights hold {len(layers)}"
        raise HeedfulError(what, where=folder, remedy=f"use the {config} that belongs to these weights")
