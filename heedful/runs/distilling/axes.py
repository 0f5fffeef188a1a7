"""The principal axes of the teacher's vectors, which turn them to the student's width and are kept with the run.

They lie in the run's folder as a Dense module of sentence-transformers, which is what they become behind the student's
pooling where its vectors are to be in the teacher's space: the columns are orthonormal, so that cosines stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.atomic import atomic_folder
from heedful.checkpoints.sentence_dense import read_dense
from heedful.checkpoints.tensors import write_tensors
from heedful.json_files import write_json
from heedful.nn.principal_axes import principal_axes

AXES = Path("teacher", "axes")
ROWS_AT_ONCE = 8192


def keep_axes(run: Path, vectors: NDArray[np.float32], width: int, note: Callable[[str], object]) -> None:
    """Find the axes of the teacher's vectors for a student of this width and write them down."""
    axes, kept = principal_axes(_unit(vectors), width)
    if len(axes) != width:
        note(f"the teacher's vectors, {len(axes)} wide, keep {kept:.1%} of their squared length in {width}")
    with atomic_folder(run / AXES, overwrite=True) as folder:
        shape = {"in_features": width, "out_features": len(axes), "bias": False}
        write_json(folder / "config.json", {**shape, "activation_function": "torch.nn.modules.linear.Identity"})
        write_tensors(folder, {"linear.weight": axes})


def axes_of(run: Path) -> Tensor | None:
    """The axes (the teacher's width, the student's), None where what is learned are not vectors."""
    if not (run / AXES).exists():
        return None
    linear = read_dense(run / AXES).load().get_submodule("0")
    assert isinstance(linear, nn.Linear)
    return linear.weight.detach()


def _unit(vectors: NDArray[np.float32]) -> Iterator[Tensor]:
    for start in range(0, len(vectors), ROWS_AT_ONCE):
        block = torch.from_numpy(np.array(vectors[start : start + ROWS_AT_ONCE]))
        yield nn.functional.normalize(block, dim=-1)
