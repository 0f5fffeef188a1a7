"""Matrix products in 8-bit whole numbers: what they are, written out.

    W ≈ diag(s) Q,   x ≈ t q + m,   W x + b ≈ t · diag(s) (Q q) + m · diag(s) (Q 1) + b

Each row of W, an output channel, has a scale s of its own, fixed once; each token x has its scale t and its least
number m, found when it comes. Q has a sign and q has none. Both are whole numbers, and so are their products and sums:
only the two roundings cost anything.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LEVELS = 127  # the largest number of a byte with a sign
TOKEN_LEVELS = 255  # of one without
_SMALLEST = 1e-30  # of scales times levels, so that a row of zeros has one that can be divided by
_SMALLEST_SPAN = 1e-8  # added to what a token's numbers span, for the same reason; FBGEMM has this number
_SPARE_BITS = 7  # of a scale's 24: those that its product with a number of 7 bits needs


class Rounded(NamedTuple):
    """Rows of whole numbers and the scale of each."""

    numbers: Tensor  # int8, (…, D)
    scales: Tensor  # float32, (…, 1)

    def restored(self) -> Tensor:
        """What the numbers stand for, in float32; of weights exactly so."""
        return self.numbers.to(torch.float32) * self.scales


class RoundedTokens(NamedTuple):
    """Tokens as whole numbers from 0 on, and what makes those into theirs again."""

    numbers: Tensor  # uint8, (…, D)
    scales: Tensor  # float32, (…, 1)
    least: Tensor  # float32, (…, 1): what 0 stands for

    def restored(self) -> Tensor:
        """What the numbers stand for, in float32."""
        return self.numbers.to(torch.float32) * self.scales + self.least


def rounded_weights(matrix: Tensor) -> Rounded:
    """A matrix row by row; rounding what was rounded changes no bit.

    A scale has 17 significant bits, so that its product with every number is exact in float32.
    """
    matrix = matrix.detach().to(torch.float32)
    scales = matrix.abs().amax(-1, keepdim=True).clamp_min_(_SMALLEST) / LEVELS
    spare = (1 << _SPARE_BITS) - 1
    scales = ((scales.view(torch.int32) + spare) & ~spare).view(torch.float32)  # up, so that no number passes LEVELS
    return Rounded((matrix / scales).round_().to(torch.int8), scales)


def rounded_tokens(x: Tensor, levels: int = TOKEN_LEVELS) -> RoundedTokens:
    """Activations, each token by itself, as numbers from 0 to levels."""
    least = x.amin(-1, keepdim=True)
    span = x.amax(-1, keepdim=True) - least
    # A tensor divided, and not a number, which torch would multiply by the reciprocal: one more rounding.
    steps = torch.full_like(span, levels).div_(span + _SMALLEST_SPAN)
    return RoundedTokens((x - least).mul_(steps).round_().to(torch.uint8), span / levels, least)


def int8_linear(x: Tensor, weight: Rounded, bias: Tensor | None, levels: int = TOKEN_LEVELS) -> Tensor:
    """x Wᵀ + b by the formula, (…, in) -> (…, out).

    The whole numbers travel as float32, which holds them and their sums below 2^24 exactly.
    """
    token = rounded_tokens(x, levels)
    total = F.linear(token.numbers.to(torch.float32), weight.numbers.to(torch.float32))
    result = total * weight.scales.T * token.scales + token.least * weight.restored().sum(-1)
    return result if bias is None else result + bias


class Int8Linear(nn.Module):
    """A linear layer whose weights are rounded; for inference only."""

    def __init__(self, linear: nn.Linear, levels: int = TOKEN_LEVELS) -> None:
        super().__init__()
        self.levels = levels
        self.rounded = rounded_weights(linear.weight)
        self.bias: Tensor | None = None if linear.bias is None else linear.bias.detach()

    def forward(self, x: Tensor) -> Tensor:
        """(…, in) -> (…, out)."""
        return int8_linear(x, self.rounded, self.bias, self.levels)
