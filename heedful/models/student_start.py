"""What a student takes over from its teacher before it learns: embeddings, and layers where they have the same shape.

Embeddings are brought to the student's width by the principal axes of the pieces' vectors. All tables (pieces,
positions, segments) are turned by the same axes, so that what is added up there stays so.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from heedful.models.encoder import Encoder
from heedful.nn.principal_axes import principal_axes

TABLES = "embeddings."
TOKENS = "embeddings.token.weight"


def follow_teacher(student: Encoder, teacher: Encoder, pieces: Tensor) -> list[str]:
    """Give a student what its teacher has for it; tells what that was.

    `pieces` are the teacher's vectors of the student's pieces, (V, the teacher's width).
    """
    ours, theirs = student.state_dict(), teacher.state_dict()
    axes, kept = principal_axes([pieces], student.token_matrix.shape[1])
    with torch.no_grad():
        student.token_matrix[: len(pieces)] = pieces @ axes
        for name, table in _tables(ours, theirs, axes).items():
            rows = min(len(table), len(theirs[name]))
            table[:rows] = theirs[name][:rows] @ axes
        told = [f"embeddings of {len(pieces):,} pieces ({kept:.1%} of their squared length)"]
        return [*told, *_take_layers(ours, theirs, student.layer_count, teacher.layer_count)]


def _tables(ours: Mapping[str, Tensor], theirs: Mapping[str, Tensor], axes: Tensor) -> dict[str, Tensor]:
    """The student's other tables of embeddings, which the teacher has too."""
    shared = {name: table for name, table in ours.items() if name.startswith(TABLES) and name in theirs}
    shared = {name: table for name, table in shared.items() if name != TOKENS and table.ndim == 2}
    return {name: x for name, x in shared.items() if (theirs[name].shape[-1], x.shape[-1]) == tuple(axes.shape)}


def _take_layers(ours: Mapping[str, Tensor], theirs: Mapping[str, Tensor], layers: int, of: int) -> list[str]:
    """Copy evenly spread layers, the teacher's last among them, and the norm below; nothing if the shapes differ."""
    if layers > of:
        return []
    chosen = [round((i + 1) * of / layers) - 1 for i in range(layers)]
    names = {name: _spelled(name, chosen) for name in ours if name.startswith("layers.")}
    below = {name: name for name in ours if name.startswith(TABLES) and ours[name].ndim == 1}
    pairs = {**names, **below}
    if not names or any(ours[name].shape != theirs.get(other, ours[name][:0]).shape for name, other in pairs.items()):
        return []
    for name, other in pairs.items():
        ours[name].copy_(theirs[other])
    return [f"layers {', '.join(str(number + 1) for number in chosen)} of {of}"]


def _spelled(name: str, chosen: list[int]) -> str:
    """The teacher's name of a parameter of the student's layers."""
    _, number, rest = name.split(".", 2)
    return f"layers.{chosen[int(number)]}.{rest}"
