"""Whitening: the affine map after which vectors have mean 0 and covariance 1 (Su et al., 2021).

    y = Λ^-½ Uᵀ (x - μ),  where μ is the mean of x and U Λ Uᵀ its covariance

Vectors of texts all point much the same way, and a few directions decide nearly all of a cosine. After the map all
directions count alike. Of a narrower space those are kept in which the vectors differ most.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor, nn

# A direction in which the vectors hardly differ says little of them, but another text may: it is not made larger than
# one with this share of the greatest variance.
LEAST_SHARE = 1e-4


class Whitening(NamedTuple):
    """The map, and what it was made from."""

    layer: nn.Linear
    vectors: int
    spread: float  # the variance where they differ most
    kept: float  # the share of their variance that lies in the directions kept


def whitening(blocks: Iterable[Tensor], width: int | None = None) -> Whitening:
    """From all vectors in `blocks` of (n, D), looked at once, to `width` numbers, or D if they are fewer."""
    count, total, squares = 0, torch.zeros(()), torch.zeros(())
    for block in blocks:
        x = block.double()
        count, total, squares = count + len(x), total + x.sum(0), squares + x.T @ x
    mean = total / count
    spreads, directions = torch.linalg.eigh(squares / count - mean.outer(mean))  # from the least on
    spreads = spreads.clamp(min=float(spreads[-1]) * LEAST_SHARE)
    first = max(0, len(mean) - width) if width else 0
    matrix = (directions[:, first:] / spreads[first:].sqrt()).T.flip(0)
    layer = nn.Linear(len(mean), len(matrix))
    with torch.no_grad():
        layer.weight.copy_(matrix)
        layer.bias.copy_(-matrix @ mean)
    kept = float(spreads[first:].sum() / spreads.sum().clamp(min=1e-300))
    return Whitening(layer.requires_grad_(False), count, float(spreads[-1]), kept)
