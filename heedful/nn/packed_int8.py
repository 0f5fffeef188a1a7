"""The product of `heedful.nn.int8` by oneDNN's instructions, on x86.

They multiply bytes without a sign by bytes with one, so a token's numbers are moved up, and what that adds is taken off
again: Q (q + z) - z Q 1. A processor with VNNI adds four such products in 32 bits. One without it adds two in 16 bits,
which overflow unless a token's numbers have 7 bits and not 8.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from heedful.nn.int8 import LEVELS, Int8Linear, rounded_tokens

LEVELS_WITHOUT_DOT = 63
X86 = ("x86_64", "amd64")
CAPS = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")
_DOT_PRODUCTS = ("avx512_vnni", "avx_vnni", "amx_int8")
_WITHOUT_DOT = ("SSE41", "AVX", "AVX2", "AVX512_CORE")


@dataclass(frozen=True)
class Int8Instructions:
    """Whether a processor has a dot product of bytes, and how that is known."""

    there: bool
    reason: str


def int8_instructions() -> Int8Instructions:
    """What this processor has, by its flags and by what oneDNN was told not to use."""
    if platform.machine().lower() not in X86:
        return Int8Instructions(False, f"int8 has no fast product here on {platform.machine()}")
    flags = torch.cpu.get_capabilities()
    if not any(flags.get(name) for name in _DOT_PRODUCTS):
        return Int8Instructions(False, "this processor has no dot product of bytes (VNNI)")
    for name in CAPS:
        if (asked := os.environ.get(name, "").upper()) in _WITHOUT_DOT:
            return Int8Instructions(False, f"{name}={asked} keeps oneDNN from the processor's dot product of bytes")
    return Int8Instructions(True, "this processor has a dot product of bytes (VNNI)")


def can_pack_int8() -> bool:
    """Whether this torch has the product, with or without VNNI; elsewhere the formula is computed in float32."""
    return platform.machine().lower() in X86 and hasattr(torch.ops.onednn, "qlinear_pointwise")


def int8_levels() -> int:
    """How finely a token can be rounded here without an overflow."""
    return LEVELS if not can_pack_int8() or int8_instructions().there else LEVELS_WITHOUT_DOT


class PackedInt8Linear(nn.Module):
    """An `Int8Linear` with its weights laid out once as oneDNN wants them."""

    def __init__(self, linear: Int8Linear) -> None:
        super().__init__()
        numbers, scales = linear.rounded
        self.levels = linear.levels
        self.bias: Tensor | None = linear.bias
        self.outputs, self.zero = len(numbers), linear.levels + 1
        # Plain attributes and not buffers: the packed layout is opaque, it cannot be saved or moved.
        self.packed = torch.ops.onednn.qlinear_prepack(numbers.contiguous(), None)
        self.scales = scales.flatten()
        self.none = torch.zeros(self.outputs, dtype=torch.int32)  # weights are not moved
        self.moved = -self.zero * self.scales * numbers.sum(1, dtype=torch.int64).to(torch.float32)

    def forward(self, x: Tensor) -> Tensor:
        """(…, in) -> (…, out)."""
        token = rounded_tokens(x.reshape(-1, x.shape[-1]), self.levels)
        moved = token.numbers.view(torch.uint8).add_(self.zero)  # wraps around, as bytes do
        product: Tensor = torch.ops.onednn.qlinear_pointwise(
            *(moved, 1.0, 0, self.packed, self.scales, self.none, self.moved),
            *(1.0, 0, torch.float32, "none", [], ""),
        )
        # In place: fresh memory would cost as much again as the sum.
        if self.bias is not None:
            torch.addcmul(self.bias, product, token.scales, out=product)
        else:
            product.mul_(token.scales)
        return product.view(*x.shape[:-1], self.outputs)
