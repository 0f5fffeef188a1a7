"""Linear layers for inference on a CPU: the weights laid out once in the order oneDNN's product wants them.

Same results as `nn.Linear` within rounding, without gradients. It was faster than the plain layer on the AMD processor
it was measured on, where torch's default matrix library is not at its best.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


def can_pack() -> bool:
    """Whether this torch has the products that packed layers call."""
    available: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return available and hasattr(torch.ops.mkldnn, "_linear_pointwise")


class PackedLinear(nn.Module):
    """x Wᵀ + b, and GELU of it if `gelu`, whose `form` is none (erf) or tanh, in one product over packed weights."""

    def __init__(self, linear: nn.Linear, gelu: bool = False, form: str = "none") -> None:
        super().__init__()
        self.activation, self.form = "gelu" if gelu else "none", form
        # A plain attribute and not a buffer: the packed layout is opaque, it cannot be saved or moved.
        self.packed = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach())
        self.bias = None if linear.bias is None else linear.bias.detach()

    def forward(self, x: Tensor) -> Tensor:
        """(N, in) -> (N, out)."""
        result: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias, self.activation, [], self.form)
        return result
