"""The layers of the Transformer: Vaswani et al., "Attention Is All You Need", 2017.

Each sublayer f stands in a residual connection with a norm:

    post-norm, as in the paper   LayerNorm(x + f(x))
    pre-norm                     x + f(LayerNorm(x)), and one more LayerNorm at the end of the stack
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.nn.attention import MultiHeadSelfAttention
from heedful.nn.decoder_attention import DecoderSelfAttention, EncoderDecoderAttention, KeyValues, Memory
from heedful.nn.dropout import Dropout
from heedful.nn.positions import sinusoids
from heedful.nn.ragged import Layout
from heedful.schema import Group


@dataclass(frozen=True)
class LayerShape:
    """What all layers of a Transformer have in common."""

    width: int
    heads: int
    inner: int  # width of the feed-forward's hidden layer
    pre_norm: bool
    dropout: float
    attention_dropout: float
    eps: float


class Positions(nn.Module):
    """A vector for each place: the sinusoids, which are not saved with the model, or a learned table."""

    table: Tensor  # (length, D)

    def __init__(self, length: int, width: int, learned: bool) -> None:
        super().__init__()
        if learned:
            self.table = nn.Parameter(torch.zeros(length, width))
        else:
            self.register_buffer("table", sinusoids(length, width), persistent=False)

    def forward(self, places: Tensor) -> Tensor:
        """(N,) -> (N, D)."""
        return F.embedding(places, self.table)


class Embeddings(nn.Module):
    """√D · token + position, then dropout."""

    def __init__(self, vocab_size: int, width: int, positions: Positions, dropout: float) -> None:
        super().__init__()
        self.token = nn.Embedding(vocab_size, width)
        self.position = positions
        self.dropout = Dropout(dropout)

    def forward(self, ids: Tensor, places: Tensor) -> Tensor:
        """(N,) ids and where they stand -> (N, D)."""
        scale = self.token.embedding_dim**0.5
        return self.dropout(torch.add(self.position(places), self.token(ids), alpha=scale))  # type: ignore[no-any-return]


class Residual(nn.Module):
    """What is around every sublayer: norm, dropout, and the sum with its input."""

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.pre_norm = shape.pre_norm
        self.norm = nn.LayerNorm(shape.width, eps=shape.eps)
        self.dropout = Dropout(shape.dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """(N, D) -> (N, D)."""
        total = x + self.dropout(sublayer(self.entrance(x)))
        return total if self.pre_norm else self.norm(total)  # type: ignore[no-any-return]

    def entrance(self, x: Tensor) -> Tensor:
        """What the sublayer is given."""
        return self.norm(x) if self.pre_norm else x


class FeedForward(nn.Module):
    """max(0, x W1 + b1) W2 + b2."""

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.up = nn.Linear(shape.width, shape.inner)
        self.down = nn.Linear(shape.inner, shape.width)

    def forward(self, x: Tensor) -> Tensor:
        """(N, D) -> (N, D)."""
        return self.down(self.up(x).relu_())  # type: ignore[no-any-return]


class EncoderLayer(nn.Module):
    """Self-attention and a feed-forward."""

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.attention = MultiHeadSelfAttention(shape.width, shape.heads, shape.attention_dropout)
        self.attention_residual = Residual(shape)
        self.feed_forward = FeedForward(shape)
        self.feed_forward_residual = Residual(shape)

    def forward(self, x: Tensor, groups: Sequence[Group]) -> Tensor:
        """(N, D) -> (N, D)."""
        x = self.attention_residual(x, lambda y: self.attention(y, groups))
        return self.feed_forward_residual(x, self.feed_forward)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class View:
    """How the targets lie in a block, and what each of its positions may see of the past."""

    layout: Layout
    visible: Tensor | None  # broadcasts to (B, H, T, S); None for all of it


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the encoder, and a feed-forward."""

    also_forward: ClassVar[tuple[str, ...]] = ("projected",)  # computed like `forward` by whoever gathers the weights

    def __init__(self, shape: LayerShape, memory_width: int) -> None:
        super().__init__()
        self.attention = DecoderSelfAttention(shape.width, shape.heads, shape.attention_dropout)
        self.attention_residual = Residual(shape)
        self.cross = EncoderDecoderAttention(shape.width, shape.heads, shape.attention_dropout, memory_width)
        self.cross_residual = Residual(shape)
        self.feed_forward = FeedForward(shape)
        self.feed_forward_residual = Residual(shape)

    def forward(
        self, x: Tensor, view: View, memory: KeyValues, visible: Tensor | None, past: KeyValues | None
    ) -> Tensor:
        """(N, D) -> (N, D); `visible` is that of the memory."""
        x = self.look_back(x, view, past)
        x = self.cross_residual(x, lambda y: self.cross(y, view.layout, memory, visible))
        return self.feed_forward_residual(x, self.feed_forward)  # type: ignore[no-any-return]

    def projected(self, states: Tensor) -> Tensor:
        """The keys and values that it needs of the encoder's states, (N, D) -> (N, 2D)."""
        return self.cross.memory(states)  # type: ignore[no-any-return]

    def look_back(self, x: Tensor, view: View, past: KeyValues | None = None) -> Tensor:
        """The first sublayer alone."""
        return self.attention_residual(x, lambda y: self.attention(y, view.layout, view.visible, past))  # type: ignore[no-any-return]


class Encoder(nn.Module):
    """A stack of encoder layers."""

    def __init__(self, shape: LayerShape, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(shape) for _ in range(layers))
        self.norm = _last_norm(shape)

    def forward(self, x: Tensor, groups: Sequence[Group]) -> Tensor:
        """Embedded tokens (N, D) -> states (N, D)."""
        for layer in self.layers:
            x = layer(x, groups)
        return self.norm(x)  # type: ignore[no-any-return]


class Decoder(nn.Module):
    """A stack of decoder layers."""

    def __init__(self, shape: LayerShape, layers: int, memory_width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(shape, memory_width) for _ in range(layers))
        self.norm = _last_norm(shape)

    def __iter__(self) -> Iterator[DecoderLayer]:
        for layer in self.layers:
            assert isinstance(layer, DecoderLayer)
            yield layer

    def remember(self, states: Tensor, layout: Layout, visible: Tensor | None) -> Memory:
        """What all layers need of the encoder's states (N, D)."""
        return Memory(tuple(layer.cross.remember(layer.projected(states), layout) for layer in self), visible)

    def forward(self, x: Tensor, view: View, memory: Memory, past: Sequence[KeyValues] | None = None) -> Tensor:
        """Embedded tokens (N, D) -> states (N, D); `past` has an entry a layer, see `DecoderSelfAttention`."""
        pasts: Sequence[KeyValues | None] = past or [None] * len(self.layers)
        for layer, pair, own in zip(self, memory.layers, pasts, strict=True):
            x = layer(x, view, pair, memory.visible, own)
        return self.norm(x)  # type: ignore[no-any-return]

    def alignment(self, x: Tensor, view: View, memory: Memory, number: int) -> Tensor:
        """The weights of layer `number`, counted from 1, over the encoder's states: (B, H, T, S)."""
        *below, last = zip(list(self)[:number], memory.layers, strict=False)
        for layer, pair in below:
            x = layer(x, view, pair, memory.visible, None)
        layer, pair = last
        y = layer.cross_residual.entrance(layer.look_back(x, view))
        return layer.cross.weights(y, view.layout, pair, memory.visible)


def _last_norm(shape: LayerShape) -> nn.Module:
    return nn.LayerNorm(shape.width, eps=shape.eps) if shape.pre_norm else nn.Identity()
