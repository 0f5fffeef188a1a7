"""The directions in which vectors are longest: a narrower space that keeps most of them.

A (D, d) holds the d eigenvectors of Σ x xᵀ with the largest eigenvalues, about zero and not about the mean, so that
cosines stay what they are: (Ax)·(Ay) = x·y.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor


def principal_axes(blocks: Iterable[Tensor], width: int) -> tuple[Tensor, float]:
    """The axes (D, width) of all vectors in `blocks` of (n, D), and the share of their squared length that they keep.

    In a space as wide as its own or wider a vector stays what it is, followed by zeros.
    """
    squares = torch.zeros(0, 0, dtype=torch.float64)
    for block in blocks:
        own = block.shape[1]
        if width >= own:
            return torch.eye(own, width), 1.0
        x = block.double()
        squares = x.T @ x + (squares if len(squares) else 0)
    lengths, directions = torch.linalg.eigh(squares)  # from the shortest on
    axes = directions.flip(1)[:, :width].float().contiguous()
    return axes, float(lengths[-width:].sum() / lengths.sum().clamp(min=1e-12))
