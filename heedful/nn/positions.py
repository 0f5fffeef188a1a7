"""Where a token stands: as a vector, as a rotation, or as a distance from another token."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


def sinusoids(length: int, width: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(pos / 10000^(2i/d)), as (length, width).

    Places that are near have vectors that are near, and PE(pos + k) is one linear function of PE(pos) for all pos.
    """
    place = torch.arange(length, dtype=torch.float64)[:, None]
    angle = place / 10000 ** (torch.arange(0, width, 2, dtype=torch.float64) / width)  # (length, ⌈width / 2⌉)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :width].float()


@dataclass(frozen=True)
class Rotation:
    """Rotary positions: Su et al., "RoFormer", 2021. The product of two rotated vectors depends on their distance."""

    cos: Tensor  # (T, d)
    sin: Tensor

    @classmethod
    def of(cls, length: int, width: int, theta: float) -> Rotation:
        """The places 0 … T - 1 in heads of width d: place p turns coordinates i and i + d/2 by p / theta^(2i/d)."""
        speeds = 1.0 / theta ** (torch.arange(0, width, 2, dtype=torch.float32) / width)
        angles = (torch.arange(length, dtype=torch.float32)[:, None] * speeds).repeat(1, 2)
        return cls(angles.cos(), angles.sin())

    def to(self, like: Tensor) -> Rotation:
        """The same on the device and in the type of a tensor."""
        return Rotation(self.cos.to(like), self.sin.to(like))

    def __call__(self, x: Tensor) -> Tensor:
        """(…, T, d) -> (…, T, d)."""
        first, second = x.chunk(2, dim=-1)
        return x * self.cos + torch.cat([-second, first], dim=-1) * self.sin


def window(length: int, reach: int) -> Tensor:
    """Whether a place sees another, (T, T): where they are at most `reach` apart."""
    place = torch.arange(length)
    return (place[:, None] - place[None, :]).abs() <= reach


def distance_buckets(length: int, buckets: int = 32, farthest: int = 128) -> Tensor:
    """The number of the bucket for each query's distance to each key, (T, T): Raffel et al., "T5", 2019.

    Half of the buckets are for keys to the right. Of each half, the first half holds one distance each, the others
    ever wider ranges of them, by logarithm; from `farthest` on all are one.
    """
    place = torch.arange(length)
    distance = place[None, :] - place[:, None]
    half, size = buckets // 2, distance.abs()
    exact = half // 2
    wide = exact + (torch.log(size.float() / exact) / math.log(farthest / exact) * (half - exact)).long()
    return (distance > 0).long() * half + torch.where(size < exact, size, wide.clamp(max=half - 1))
