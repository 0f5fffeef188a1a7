"""The one entry point from a folder on disk to an object that answers."""

from __future__ import annotations

from pathlib import Path

import torch

from heedful.checkpoints.folder import read_folder
from heedful.errors import HeedfulError
from heedful.inference.embedder import Embedder

# What `load` makes of a folder, by the model type in its config.json.
KINDS = {"bert": Embedder}


def load(folder: str | Path, device: str | None = None) -> Embedder:
    """Load a model folder; `device` is cpu, cuda, cuda:1 …, None for a GPU if there is one and else the processor."""
    contents = read_folder(folder)
    return KINDS[contents.model_type](contents, _device(device))


def _device(asked: str | None) -> str:
    if asked is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=asked).cpu()
    except (RuntimeError, AssertionError) as error:  # torch's ways to say "no such name" and "not built for it"
        what = f"the device {asked!r} is not available"
        raise HeedfulError(what, remedy="use device='cpu', or install a torch that was built for it") from error
    return asked
