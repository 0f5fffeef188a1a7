"""One vector from many: pooling over the rows of segments of a flat run of vectors, and joining those of layers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

POOLINGS = ("cls", "mean", "max", "mean-max", "weighted-mean", "last")
COMBINATIONS = ("concat", "sum", "mean")


def pool(x: Tensor, lengths: Sequence[int], how: str) -> Tensor:
    """Pool each run of `lengths` rows of x (N, D) into one row: (B, D), or (B, 2D) for mean-max.

    cls takes the first row of a run and last the last one; in a weighted mean row i of a run has the weight i.
    """
    if how == "mean-max":
        return torch.cat([pool(x, lengths, "mean"), pool(x, lengths, "max")], dim=-1)
    if not lengths:
        return x[:0]
    if how == "mean" and len(lengths) == 1:  # of a lone query, which waits for each of the steps below
        return x.mean(0, keepdim=True)
    size = torch.tensor(lengths, device=x.device)
    if how == "cls":
        return x[first_rows(lengths).to(x.device)]
    if how == "last":
        return x[last_rows(lengths).to(x.device)]
    if how == "weighted-mean":
        places = torch.cat([torch.arange(1, n + 1, dtype=x.dtype, device=x.device) for n in lengths])
        total = torch.segment_reduce(x * places[:, None], "sum", lengths=size, axis=0)
        return total / (size * (size + 1) / 2).to(x.dtype)[:, None]
    return torch.segment_reduce(x, how, lengths=size, axis=0)


def compare(x: Tensor, lengths: Sequence[int], segments: Tensor) -> Tensor:
    """Pool the two texts of each pair by themselves and lay them against each other, (N, D) -> (B, 4D)."""
    size = torch.tensor(lengths, device=x.device)
    means = []
    for side in (0, 1):
        own = (segments == side).to(x.dtype)[:, None]
        total, count = (torch.segment_reduce(part, "sum", lengths=size, axis=0) for part in (x * own, own))
        means.append(total / count.clamp(min=1))
    return compared(*means)


def compared(u: Tensor, v: Tensor) -> Tensor:
    """u, v, |u - v| and u * v side by side, (B, D) each -> (B, 4D): Conneau et al., 2017, section 3.1.

    What two texts have in common is then a linear function; from u and v alone a small model must first learn it.
    """
    return torch.cat([u, v, (u - v).abs(), u * v], dim=-1)


def combine(layers: Sequence[Tensor], how: str) -> Tensor:
    """Join the states of several layers: side by side, added, or averaged; what is to be mixed stays side by side."""
    if len(layers) == 1:
        return layers[0]
    if how in ("concat", "mix"):
        return torch.cat(list(layers), dim=-1)
    total = torch.stack(list(layers)).sum(0)
    return total / len(layers) if how == "mean" else total


def first_rows(lengths: Sequence[int]) -> Tensor:
    """The flat row at which each sequence begins, (B,)."""
    size = torch.tensor(lengths)
    return size.cumsum(0) - size


def last_rows(lengths: Sequence[int]) -> Tensor:
    """The flat row with which each sequence ends, (B,)."""
    return torch.tensor(lengths).cumsum(0) - 1
