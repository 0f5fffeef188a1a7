"""A packed layer of BERT over one text alone, such as a query.

Its few tokens are multiplied in no time; what takes long is all that stands between the products: modules that look
their parts up, hooks that are not there, bookkeeping for groups of texts. Here is the formula and nothing else.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.nn.packed_linear import plus


class LoneTextLayer:
    """The same as `BertLayer.forward` of one text, over its packed products; for inference only."""

    def __init__(
        self, heads: int, products: tuple[nn.Module, ...], attention_norm: nn.LayerNorm, output_norm: nn.LayerNorm
    ) -> None:
        """`products` are qkv, out, up with its activation, and down."""
        self.heads = heads
        qkv, out, up, down = products
        self.qkv, self.out, self.up, self.down = qkv.forward, plus(out), up.forward, plus(down)
        self.attention_norm, self.output_norm = _norm(attention_norm), _norm(output_norm)

    def __call__(self, x: Tensor) -> Tensor:
        """(T, D) -> (T, D)."""
        length, width = x.shape
        # The one text is the first dimension, as torch's kernel wants it: (3, 1, H, T, d).
        query, key, value = self.qkv(x).view(1, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(query, key, value).transpose(1, 2).reshape(length, width)
        x = torch.layer_norm(self.out(mixed, x), *self.attention_norm)
        return torch.layer_norm(self.down(self.up(x), x), *self.output_norm)


def _norm(norm: nn.LayerNorm) -> tuple[list[int], Tensor, Tensor, float]:
    """What `torch.layer_norm` is told besides its input."""
    return list(norm.normalized_shape), norm.weight, norm.bias, norm.eps
