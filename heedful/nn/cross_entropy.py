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
# Of logits that are made together: enough rows for products at full speed.
BYTES_OF_LOGITS = 1 << 25


def summed_cross_entropy(logits: Tensor, labels: Tensor, smoothing: float = 0.0) -> Tensor:
    """- Σ_m ( (1 - ε) log p(y_m) + ε · 1/V Σ_v log p(v) ) of logits (M, V) and labels (M,).

    Where a gradient is wanted the logits are used up: they must not be looked at again, and the gradient can be taken
    once. Sums of many terms need all bits: of logits in half precision they are in float32.
    """
    if logits.requires_grad and logits.device.type == "cpu":
        return _InPlace.apply(logits, labels, smoothing)  # type: ignore[no-any-return, no-untyped-call]
    return F.cross_entropy(_wide(logits), labels, reduction="sum", label_smoothing=smoothing)


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
    given, rows = rows, _wide(rows)
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


def projected_cross_entropy(states: Tensor, matrix: Tensor, labels: Tensor) -> Tensor:
    """- Σ_m log softmax(states matrixᵀ)[y_m] of states (M, D), matrix (V, D) and labels (M,).

    The logits of some rows at a time: they become the gradient in their own place, and that of states and matrix is
    made at once, so that the logits of all rows are never in memory. The gradient can be taken once.
    """
    if states.requires_grad or matrix.requires_grad:
        return _Projected.apply(states, matrix, labels)  # type: ignore[no-any-return, no-untyped-call]
    parts = zip(_rows(states, matrix), _rows(labels, matrix), strict=True)
    sums = [F.cross_entropy(_wide(F.linear(some, matrix)), right, reduction="sum") for some, right in parts]
    return torch.stack(sums).sum()


class _Projected(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, matrix: Tensor, labels: Tensor) -> Tensor:
        low = matrix.to(torch.get_autocast_dtype(states.device.type)) if _rounds(states) else matrix
        of_states, of_matrix = torch.empty_like(states), torch.zeros_like(matrix)
        losses = []
        for some, right, target in zip(
            _rows(states, matrix), _rows(labels, matrix), _rows(of_states, matrix), strict=True
        ):
            some = some.to(low.dtype)
            logits = F.linear(some, low)
            losses.append(_to_gradient(logits, right.unsqueeze(1), 0.0))
            target.copy_(logits @ low)
            of_matrix.addmm_(logits.T, some) if low is matrix else of_matrix.add_(logits.T @ some)
        ctx.save_for_backward(of_states, of_matrix)
        return torch.stack(losses).sum()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        of_states, of_matrix = ctx.saved_tensors
        return of_states.mul_(gradient), of_matrix.mul_(gradient), None


def _wide(numbers: Tensor) -> Tensor:
    """The same numbers in float32, unless they have more bits."""
    return numbers.to(torch.promote_types(numbers.dtype, torch.float32))


def _rows(tensor: Tensor, matrix: Tensor) -> tuple[Tensor, ...]:
    """Parts of a tensor's rows whose logits over the matrix stay small."""
    return torch.split(tensor, max(1, BYTES_OF_LOGITS // (matrix.element_size() * len(matrix))))


def _rounds(states: Tensor) -> bool:
    return torch.is_autocast_enabled(states.device.type)
