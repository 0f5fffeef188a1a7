"""The product of `heedful.nn.int8` by oneDNN's instructions, on x86.

They multiply bytes without a sign by bytes with one. A processor with VNNI adds four such products in 32 bits. One
without it adds two in 16 bits, which overflow unless a token's numbers have 7 bits and not 8.
"""

from __future__ import annotations

import math
import os
import platform
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.nn.int8 import TOKEN_LEVELS, Int8Linear, RoundedTokens, rounded_tokens

LEVELS_WITHOUT_DOT = 127
X86 = ("x86_64", "amd64")
CAPS = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")
_DOT_PRODUCTS = ("avx512_vnni", "avx_vnni", "amx_int8")
_WITHOUT_DOT = ("SSE41", "AVX", "AVX2", "AVX512_CORE")
_BEHIND = 8  # bytes of two numbers in float32
# Up to so many rows, what a product takes to begin is more than what it takes to compute.
FEW_ROWS = 64
_SIGN = 128  # from a byte without a sign to one with it


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
    return TOKEN_LEVELS if not can_pack_int8() or int8_instructions().there else LEVELS_WITHOUT_DOT


class PackedInt8Linear(nn.Module):
    """An `Int8Linear` with its weights laid out once as oneDNN wants them.

    Two calls do the most of it, because for the few rows of a query or a step of a search every call counts. FBGEMM
    rounds all tokens in one that is meant for tables of embeddings: behind the bytes of a token it writes 8 more, its
    scale and its least number. They go into the product with the others, against weights of zero.

    For few rows, where the processor has VNNI, there is a product that takes a tenth of the time to begin, but
    multiplies bytes with a sign only and leaves all scales to us.
    """

    def __init__(self, linear: Int8Linear, gelu: str | None = None) -> None:
        """With `gelu`, a form of it, none (erf) or tanh, GELU of the product."""
        super().__init__()
        self.gelu = gelu
        numbers, scales = linear.rounded
        self.levels = linear.levels
        self.outputs, self.inputs = numbers.shape
        self.at_once = self.levels == TOKEN_LEVELS and self.inputs % 4 == 0  # else the 8 bytes cannot be read in place
        wide = F.pad(numbers, (0, _BEHIND)) if self.at_once else numbers.contiguous()
        # Plain attributes and not buffers: the packed layout is opaque, it cannot be saved or moved.
        self.packed = torch.ops.onednn.qlinear_prepack(wide, None)
        self.plain = numbers.T if self.at_once and int8_instructions().there else None
        self.scales = scales.flatten()
        self.none = torch.zeros(self.outputs, dtype=torch.int32)  # weights are not moved
        self.sums = scales.flatten() * numbers.sum(1, dtype=torch.int64)
        self.bias: Tensor | None = linear.bias
        # Looked up once: for few rows every step counts.
        self.round = torch.ops.quantized.embedding_bag_byte_prepack.default
        self.product = torch.ops.onednn.qlinear_pointwise.default
        self.activate = torch.ops.aten.gelu_.default
        # Tensors already: a number is made one at every call.
        self.sign = torch.tensor(_SIGN, dtype=torch.uint8)
        self.one_half, self.root = torch.tensor(0.5), torch.tensor(math.sqrt(0.5))

    def forward(self, x: Tensor) -> Tensor:
        """(…, in) -> (…, out)."""
        flat = x if x.dim() == 2 else x.reshape(-1, self.inputs)
        few = self.plain is not None and len(flat) <= FEW_ROWS
        result = self._of_few(flat) if few else self._of_many(flat)
        if few and self.gelu == "none":  # written out, as torch's takes longer to begin
            erf = torch.mul(result, self.root).erf_()
            result.mul_(self.one_half).addcmul_(result, erf)
        elif self.gelu is not None:
            self.activate(result, approximate=self.gelu)
        return result if x.dim() == 2 else result.view(*x.shape[:-1], self.outputs)

    def _of_many(self, x: Tensor) -> Tensor:
        numbers, scales, least = self._rounded(x)
        product: Tensor = self.product(
            *(numbers, 1.0, 0, self.packed, self.scales, self.none, None),
            *(1.0, 0, torch.float32, "none", [], ""),
        )
        result = torch.mul(least, self.sums) if self.bias is None else torch.addcmul(self.bias, least, self.sums)
        return result.addcmul_(product, scales)  # in place: fresh memory would cost as much again

    def _of_few(self, x: Tensor) -> Tensor:
        """The same, the numbers of tokens 128 lower."""
        assert self.plain is not None
        numbers, behind = self.round(x).split_with_sizes((self.inputs, _BEHIND), 1)
        scales, least = behind.view(torch.float32).split_with_sizes((1, 1), 1)
        product = torch._int_mm(numbers.bitwise_xor_(self.sign).view(torch.int8), self.plain)
        middle = torch.add(least, scales, alpha=_SIGN)
        result = torch.mul(middle, self.sums) if self.bias is None else torch.addcmul(self.bias, middle, self.sums)
        return result.addcmul_(torch.mul(product, self.scales), scales)

    def _rounded(self, x: Tensor) -> RoundedTokens:
        """As `rounded_tokens`, bit for bit, and perhaps with the 8 bytes behind the numbers of each token."""
        if not self.at_once:
            return rounded_tokens(x, self.levels)
        numbers: Tensor = self.round(x)
        _, scales, least = numbers.view(torch.float32).split_with_sizes((self.inputs // 4, 1, 1), 1)
        return RoundedTokens(numbers, scales, least)
