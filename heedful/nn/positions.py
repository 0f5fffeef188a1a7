"""Where a token stands, as a vector."""

from __future__ import annotations

import torch
from torch import Tensor


def sinusoids(length: int, width: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(pos / 10000^(2i/d)), as (length, width).

    Places that are near have vectors that are near, and PE(pos + k) is one linear function of PE(pos) for all pos.
    """
    place = torch.arange(length, dtype=torch.float64)[:, None]
    angle = place / 10000 ** (torch.arange(0, width, 2, dtype=torch.float64) / width)  # (length, ⌈width / 2⌉)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :width].float()
