"""Folders in int8: a quarter of the size, and loaded without a check, which is done once when they are written."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from heedful.checkpoints.conversion import convert
from heedful.checkpoints.encoder_folder import load_encoder
from heedful.checkpoints.folder import read_folder
from heedful.checkpoints.int8_scheme import Int8Scheme
from heedful.checkpoints.translation_folder import is_translation, load_translation, save_translation
from heedful.inference.int8 import encoder_in_int8, translator_in_int8


def convert_to_int8(
    source: str | Path,
    target: str | Path,
    texts: Iterable[str] = (),
    *,
    overwrite: bool = False,
    force: bool = False,
) -> Int8Scheme:
    """Write the model of a folder in int8, as a whole or not at all, and tell what that costs on `texts`.

    Translation models too. `force` takes a tokenizer that has far fewer pieces than the model has rows.
    """
    if is_translation(source):
        found = translator_in_int8(load_translation(source), texts)
        exact = load_translation(source)  # once more: the other is rounded now
        save_translation(exact.model, target, exact.sides, exact.names, overwrite=overwrite, int8=found)
        return found
    folder = read_folder(source, force)
    found = encoder_in_int8(folder, load_encoder(folder), texts)
    convert(source, target, overwrite=overwrite, force=force, int8=found)
    return found


def weights_size(folder: Path) -> int:
    """The bytes of a folder's weights, whatever format they are in."""
    endings = (".safetensors", ".bin", ".hdf5")
    return sum(file.stat().st_size for file in folder.rglob("*") if file.suffix in endings or ".data-" in file.name)
