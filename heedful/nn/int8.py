"""Matrix products in 8-bit whole numbers: what they are, written out.

    W ≈ diag(s) Q,   x ≈ t q,   W x + b ≈ t · diag(s) (Q q) + b

Each row of W, an output channel, has a scale s of its own, fixed once; each token x has its scale t, found when it
comes. Q and q are whole numbers, and so are their products and sums: only the two roundings cost anything.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LEVELS = 127  # the largest number of a byte with a sign
_SMALLEST = 1e-30  # of scales times levels, so that a row of zeros has one that can be divided by
_SPARE_BITS = 7  # of a scale's 24: those that its product with a number of 7 bits needs


class Rounded(NamedTuple):
    """Rows of whole numbers and the scale of each."""

    numbers: Tensor  # int8, (…, D)
    scales: Tensor  # float32, (…, 1)

    def restored(self) -> Tensor:
        """What the numbers stand for, in float32; of weights exactly so."""
        return self.numbers.to(torch.float32) * self.scales


def rounded_weights(matrix: Tensor) -> Rounded:
    """A matrix row by row; rounding what was rounded changes no bit.

    A scale has 17 significant bits, so that its product with every number is exact in float32.
    """
    matrix = matrix.detach().to(torch.float32)
    scales = matrix.abs().amax(-1, keepdim=True).clamp_min_(_SMALLEST) / LEVELS
    spare = (1 << _SPARE_BITS) - 1
    scales = ((scales.view(torch.int32) + spare) & ~spare).view(torch.float32)  # up, so that no number passes LEVELS
    return Rounded((matrix / scales).round_().to(torch.int8), scales)


def rounded_tokens(x: Tensor, levels: int = LEVELS) -> Rounded:
    """Activations, each token by itself, as numbers from -levels to levels."""
    # Of both ends, and not of x.abs(), which would have to be written down first.
    largest = torch.maximum(x.amax(-1, keepdim=True), -x.amin(-1, keepdim=True)).clamp_min_(_SMALLEST)
    return Rounded(torch.mul(x, levels / largest).round_().to(torch.int8), largest / levels)


def int8_linear(x: Tensor, weight: Rounded, bias: Tensor | None, levels: int = LEVELS) -> Tensor:
    """x Wᵀ + b by the formula, (…, in) -> (…, out).

    The whole numbers travel as float32, which holds them and their sums below 2^24 exactly.
    """
    token = rounded_tokens(x, levels)
    total = F.linear(token.numbers.to(torch.float32), weight.numbers.to(torch.float32))
    result = total * weight.scales.T * token.scales
    return result if bias is None else result + bias


class Int8Linear(nn.Module):
    """A linear layer whose weights are rounded; for inference only."""

    def __init__(self, linear: nn.Linear, levels: int = LEVELS) -> None:
        super().__init__()
        self.levels = levels
        self.rounded = rounded_weights(linear.weight)
        self.bias: Tensor | None = None if linear.bias is None else linear.bias.detach()

    def forward(self, x: Tensor) -> Tensor:
        """(…, in) -> (…, out)."""
        return int8_linear(x, self.rounded, self.bias, self.levels)
