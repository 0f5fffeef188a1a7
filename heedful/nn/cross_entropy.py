"""Cross-entropy with smoothed labels for large vocabularies, without the many passes over memory that torch makes.

The logits of a training step are tens of megabytes, and torch makes four more arrays of that size. Here a few rows at
a time, which stay in the processor's cache, become the gradient in their own place: softmax(x) - q.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

BYTES_AT_ONCE = 1 << 20


def summed_cross_entropy(logits: Tensor, labels: Tensor, smoothing: float = 0.0) -> Tensor:
    """- Σ_m ( (1 - ε) log p(y_m) + ε · 1/V Σ_v log p(v) ) of logits (M, V) and labels (M,).

    Where a gradient is wanted the logits are used up: they must not be looked at again, and the gradient can be taken
    once. Sums of many terms need all bits: they are in float32, whatever the logits are in.
    """
    if logits.requires_grad and logits.device.type == "cpu":
        return _InPlace.apply(logits, labels, smoothing)  # type: ignore[no-any-return, no-untyped-call]
    return F.cross_entropy(logits.float(), labels, reduction="sum", label_smoothing=smoothing)


class _InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor, smoothing: float) -> Tensor:
        own = logits.detach()
        count = max(1, BYTES_AT_ONCE // (own.element_size() * max(own.shape[1], 1)))
        parts = zip(torch.split(own, count), torch.split(labels.unsqueeze(1), count), strict=True)
        losses = [_to_gradient(rows, right, smoothing) for rows, right in parts]
        ctx.save_for_backward(own)
        return torch.stack(losses).sum()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (own,) = ctx.saved_tensors
        return own.mul_(gradient), None, None


def _to_gradient(rows: Tensor, right: Tensor, smoothing: float) -> Tensor:
    """The loss of some rows of logits, which become its gradient."""
    spread = smoothing / rows.shape[1]
    given, rows = rows, rows.float()
    aimed = (1 - smoothing) * rows.gather(1, right).sum() + spread * rows.sum()
    highest = rows.amax(1, keepdim=True)
    sums = rows.sub_(highest).exp_().sum(1, keepdim=True)
    rows.div_(sums)
    if spread:
        rows.sub_(spread)
    rows.scatter_add_(1, right, torch.full_like(right, smoothing - 1, dtype=rows.dtype))
    if rows is not given:
        given.copy_(rows)
    return (sums.log() + highest).sum() - aimed
