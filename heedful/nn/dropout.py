"""Dropout with random numbers that are cheap on a CPU.

torch draws a 32-bit number and more for each element, one after the other on one core, which is a tenth of a training
step. Here 64 random bits decide over four elements: an element is dropped where its 16 bits, as a number, fall below
p · 65536. So p is met to within 1/131072.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_VALUES = 1 << 16  # of 16 bits; as int16 they begin at -_VALUES / 2


class Dropout(nn.Dropout):
    """As torch's, and on a GPU the same."""

    def forward(self, x: Tensor) -> Tensor:
        """Drop elements in training, and scale the others so that the mean stays."""
        return drop(x, self.p) if self.training else x


def drop(x: Tensor, p: float) -> Tensor:
    """x with each element 0 with probability p, else divided by 1 - p."""
    if p == 0:
        return x
    if x.device.type != "cpu" or p == 1:
        return F.dropout(x, p)
    bits = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(1 << 63), None)
    drawn = bits.view(torch.int16)[: x.numel()].view(x.shape)
    # As numbers at once: from a tensor of truth values it would take several times as long.
    kept = torch.ge(drawn, round(p * _VALUES) - _VALUES // 2, out=torch.empty_like(x))
    if x.dtype != torch.float32:
        return x * kept * (1 / (1 - p))  # the factor alone would be rounded to the bits of x
    return x * kept.mul_(1 / (1 - p))
