"""Linear layers for inference on a CPU: the weights laid out once in the order oneDNN's product wants them.

Same results as `nn.Linear` within rounding, without gradients. It was faster than the plain layer on the AMD processor
it was measured on, where torch's default matrix library is not at its best.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.nn.int8 import Int8Linear
from heedful.nn.packed_int8 import PackedInt8Linear, can_pack_int8

# oneDNN builds and keeps a program for each number of rows that it meets, half a megabyte or more each: batches of any
# size came to a gigabyte. So there are only some sizes: all up to the least ones, which one short text waits for, and
# from there on so many for each doubling that about two of a hundred rows are in vain.
LEAST_ROWS, LEAST_STEP, SIZES_A_DOUBLING = 16, 8, 16


def can_pack() -> bool:
    """Whether this torch has the products that packed layers call."""
    available: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return available and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def packed(linear: nn.Module, gelu: bool = False, form: str = "none") -> nn.Module:
    """A linear layer packed in the precision it has; with `gelu`, whose `form` is none (erf) or tanh, GELU of it."""
    if isinstance(linear, nn.Linear):
        return PackedLinear(linear, gelu, form)
    assert isinstance(linear, Int8Linear)
    if can_pack_int8():
        return PackedInt8Linear(linear, form if gelu else None)
    return nn.Sequential(linear, nn.GELU(form)) if gelu else linear


def plus(product: nn.Module) -> Callable[[Tensor, Tensor], Tensor]:
    """What adds a product of x to another tensor, in one go where it can."""
    if isinstance(product, PackedLinear):
        return product.plus
    return lambda x, other: product.forward(x).add_(other)


def tied_linear(matrix: Tensor, bias: Tensor | None = None) -> nn.Linear:
    """The product with a matrix that belongs to another layer, as a linear layer; without a bias it is zero."""
    linear = nn.Linear(matrix.shape[1], len(matrix), device="meta")
    linear.weight = nn.Parameter(matrix.detach(), requires_grad=False)
    linear.bias = nn.Parameter(matrix.new_zeros(len(matrix)) if bias is None else bias.detach(), requires_grad=False)
    return linear


def pack_int8(model: nn.Module) -> None:
    """Pack what is in int8 and no pack method of the model knows of."""
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, Int8Linear):
                setattr(module, name, packed(child))


class PackedLinear(nn.Module):
    """x Wᵀ + b, and GELU of it if `gelu`, whose `form` is none (erf) or tanh, over packed weights."""

    def __init__(self, linear: nn.Linear, gelu: bool = False, form: str = "none") -> None:
        super().__init__()
        # Without AVX-512, oneDNN's GELU inside the product took a third longer than torch's after it.
        inside = gelu and torch.backends.cpu.get_cpu_capability() == "AVX512"
        self.activation, self.form = "gelu" if inside else "none", form
        self.after = gelu and not inside
        self.product = torch.ops.mkldnn._linear_pointwise.default  # looked up once: for few rows every step counts
        self.sum = torch.ops.mkldnn._linear_pointwise.binary
        # A plain attribute and not a buffer: the packed layout is opaque, it cannot be saved or moved.
        self.packed = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach())
        self.bias = None if linear.bias is None else linear.bias.detach()

    def plus(self, x: Tensor, other: Tensor) -> Tensor:
        """(N, in) and (N, out) -> (N, out), their sum; without the activation."""
        if rows_computed(len(x)) > len(x):
            return self(x).add_(other)  # type: ignore[no-any-return]
        result: Tensor = self.sum(x, other, self.packed, self.bias, "add")
        return result

    def forward(self, x: Tensor) -> Tensor:
        """(N, in) -> (N, out)."""
        rows = len(x)
        more = rows_computed(rows) - rows
        x = with_more_rows(x, more) if more else x
        result: Tensor = self.product(x, self.packed, self.bias, self.activation, [], self.form)
        result = torch.ops.aten.gelu_(result, approximate=self.form) if self.after else result
        return result[:rows] if more else result


def rows_computed(rows: int) -> int:
    """The number of rows that a product of so many is computed with."""
    if rows <= LEAST_ROWS:
        return rows
    doubling = 1 << (rows - 1).bit_length()
    step = max(LEAST_STEP, doubling // 2 // SIZES_A_DOUBLING)
    return rows + -rows % step


def with_more_rows(x: Tensor, more: int) -> Tensor:
    """x (N, D) with some rows after it, whatever is in them: those that lie behind it in memory, or zeros."""
    rows, width = x.shape
    room = x.untyped_storage().nbytes() // x.element_size() - x.storage_offset()
    if x.is_contiguous() and room >= (rows + more) * width:  # a result of such a product, without the rows it had more
        return x.as_strided((rows + more, width), (width, 1))
    return F.pad(x, (0, 0, 0, more))
