"""Which engine computes an encoder: ours, or ONNX Runtime from an exported file.

auto         ours; ONNX Runtime where a folder holds nothing else
heedful      ours
onnxruntime  the `model.onnx` of the folder; without one, or in a named precision, one that is written for now
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from heedful.checkpoints.folder import ModelFolder
from heedful.checkpoints.folder_weights import ONNX, is_exported
from heedful.errors import HeedfulError
from heedful.inference.onnx_engine import Session
from heedful.inference.onnx_export import Comparison, export_onnx

ENGINES = ("auto", "heedful", "onnxruntime")


def runs_on_onnx(folder: ModelFolder, engine: str) -> bool:
    """Whether ONNX Runtime is to compute this folder."""
    if engine not in ENGINES:
        raise HeedfulError(f"no engine is called {engine!r}", remedy=f"choose {' or '.join(ENGINES)}")
    if engine == "heedful" and is_exported(folder.weights):
        what = f"the folder has {ONNX} and no weights that heedful's own engine could take"
        raise HeedfulError(what, where=folder.path, remedy="use the folder it was exported from, or another `engine`")
    return engine == "onnxruntime" or (engine == "auto" and is_exported(folder.weights))


def onnx_session(folder: ModelFolder, precision: str = "auto") -> tuple[Session, Comparison | None]:
    """The model in ONNX Runtime, and how it differs from ours if it was exported for now."""
    there = folder.weights / ONNX
    if precision == "auto" and there.is_file():
        return Session(there), None
    if is_exported(folder.weights):
        what = f"{ONNX} is computed in the precision it was exported in"
        raise HeedfulError(what, where=folder.path, remedy="leave `precision` out, or export the model in another one")
    with tempfile.TemporaryDirectory() as scratch:
        found = export_onnx(folder, Path(scratch) / "model", "float32" if precision == "auto" else precision)
        return Session(Path(scratch) / "model" / ONNX), found
