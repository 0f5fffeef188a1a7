"""An informed start: what can be counted in a text before anything is trained on it, put into a model.

    bias        log (count + 1) - log Σ (count + 1), so that the first guess is the frequency of each piece
    embeddings  skip-gram vectors of the pieces, the mean taken away, all of one length √D · s; s is the spread that the
                random rows had. Pieces that hardly occur keep their random rows
    neighbours  heads of the first layer that look one word back, one ahead, two back, two ahead …

Positions start as sinusoids, and PE(p + k) = R_k PE(p): on each pair of sine and cosine, R_k is the rotation by k times
the pair's frequency. With keys g · x and queries g · R_k x on the fastest pairs, as many as a head has room for, a head
looks at the place k away. All else stays random, and the model is an ordinary one of its family.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from heedful.nn.attention import MultiHeadSelfAttention

GAIN = 2.0


@dataclass(frozen=True)
class InformedStart:
    """Where a family's pretraining model has what can be counted."""

    token: str = "encoder.embeddings.token.weight"  # the parameter with a vector for each piece
    bias: str | None = None  # that of the logits over the pieces
    neighbours: Callable[[nn.Module], None] | None = None  # turns heads to the neighbours


def log_frequencies(counts: Tensor) -> Tensor:
    """The bias of a guess that knows nothing but how often each piece occurs, (V,) -> (V,)."""
    more = counts.double() + 1
    return (more / more.sum()).log().float()


def embedding_rows(vectors: Tensor, seen: Tensor, random: Tensor) -> Tensor:
    """The start of the embeddings, (V, D): the vectors of the pieces `seen`, spread as the `random` rows are."""
    centred = vectors - vectors[seen].mean(0)
    length = random.std() * random.shape[1] ** 0.5
    rows = centred / centred.norm(dim=1, keepdim=True).clamp(min=1e-12) * length
    return torch.where(seen[:, None], rows, random)


def inform(model: nn.Module, where: InformedStart, counts: Tensor, vectors: Tensor | None) -> None:
    """Give a model that has its random start what was counted; without `vectors` its embeddings stay as they are."""
    with torch.no_grad():
        table = model.get_parameter(where.token)
        pieces = len(counts)
        if vectors is not None:
            table[:pieces] = embedding_rows(vectors, counts > 0, table[:pieces].clone())
        if where.bias is not None:
            model.get_parameter(where.bias)[:pieces] = log_frequencies(counts)
        if where.neighbours is not None:
            where.neighbours(model)


def neighbour_heads(attention: MultiHeadSelfAttention) -> None:
    """Turn the heads of an attention over sinusoids to the neighbours: -1, +1, -2, +2 …"""
    width = attention.qkv.in_features
    size = width // attention.heads
    paired = size // 2 * 2  # of an odd head the last row stays as it is
    queries, keys = attention.qkv.weight[:width], attention.qkv.weight[width : 2 * width]  # (D, D), rows by head
    for head in range(attention.heads):
        offset = (head // 2 + 1) * (1 if head % 2 else -1)
        rows = slice(head * size, head * size + paired)
        keys[rows, :paired] = GAIN * torch.eye(paired)
        queries[rows, :paired] = GAIN * rotation(offset, paired, width)


def look_at_neighbours(model: nn.Module) -> None:
    """Turn the heads of the first layer, which sees the sinusoids best, to the words beside each."""
    first = model.get_submodule("encoder.layers.0.attention")
    assert isinstance(first, MultiHeadSelfAttention)
    neighbour_heads(first)


def rotation(offset: int, size: int, width: int) -> Tensor:
    """R with R PE(p) = PE(p + offset) on the first `size` of `width` numbers, pairs of sine and cosine."""
    angle = offset / 10000 ** (torch.arange(0, size, 2, dtype=torch.float64) / width)
    turned = torch.zeros(size, size, dtype=torch.float64)
    even, odd = torch.arange(0, size, 2), torch.arange(1, size, 2)
    turned[even, even] = turned[odd, odd] = angle.cos()  # sin(p + k) = sin p cos k + cos p sin k
    turned[even, odd], turned[odd, even] = angle.sin(), -angle.sin()  # cos(p + k) = cos p cos k - sin p sin k
    return turned.float()
