"""What a decoder looks at, as keys and values: its own past, and what the encoder has made of the source.

One forward serves training, where all T positions of a target are queries at once, and decoding, where the K
hypotheses of a sentence are: they share one memory, and what they add to the past goes into slots of one cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from heedful.nn.attention import added_to_scores, attention_weights, mix
from heedful.nn.ragged import Layout


@dataclass(frozen=True)
class Moves:
    """How the sentences of a batch are put together when only some go on: most of them stay where they are."""

    count: int  # of those that go on
    places: Tensor  # to which some are moved
    sources: Tensor  # where these are

    @classmethod
    def to(cls, sentences: Tensor) -> Moves:
        """The moves after which sentence sentences[b] is in place b."""
        places = (sentences != torch.arange(len(sentences), device=sentences.device)).nonzero()[:, 0]
        return cls(len(sentences), places, sentences[places])

    def in_place(self, x: Tensor) -> Tensor:
        """(B, …) -> (B', …) in the same memory."""
        if len(self.places):
            x.index_copy_(0, self.places, x.index_select(0, self.sources))
        return x.narrow(0, 0, self.count)


class KeyValues(NamedTuple):
    """Keys and values of B sentences, head by head."""

    keys: Tensor  # (B, H, S, d)
    values: Tensor  # (B, H, S, d)

    def first(self, slots: int) -> KeyValues:
        """Only the first so many positions, in the same memory."""
        return KeyValues(self.keys.narrow(2, 0, slots), self.values.narrow(2, 0, slots))

    def only(self, moves: Moves) -> KeyValues:
        """Some sentences, in the same memory."""
        return KeyValues(*map(moves.in_place, self))


@dataclass(frozen=True)
class Memory:
    """All that a decoder needs of the source, computed once: keys and values of each layer, and where there are any."""

    layers: tuple[KeyValues, ...]
    visible: Tensor | None  # (B, 1, 1, S), where the source has a token, see `mix`; None where it has one everywhere

    @property
    def sentences(self) -> int:
        """How many sentences there are."""
        return len(self.layers[0].keys)

    def contiguous(self) -> Memory:
        """The same, laid out for being read often."""
        visible = None if self.visible is None else added_to_scores(self.visible, self.layers[0].keys)
        return Memory(tuple(KeyValues(*(x.contiguous() for x in pair)) for pair in self.layers), visible)

    def only(self, moves: Moves) -> Memory:
        """The memory of some sentences, in the same memory."""
        visible = None if self.visible is None else moves.in_place(self.visible)
        return Memory(tuple(pair.only(moves) for pair in self.layers), visible)


class DecoderSelfAttention(nn.Module):
    """h heads over the positions of a target that a mask lets each position see, concatenated, times W^O."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, layout: Layout, visible: Tensor | None, past: KeyValues | None = None) -> Tensor:
        """(N, D) -> (N, D); `visible` broadcasts to (B, H, T, S).

        With `past`, whose last T positions are free, the new keys and values are written there, and all of it is seen.
        """
        query, key, value = _heads(layout.pad(self.qkv(x)), 3, self.heads)
        if past is not None:
            free = slice(past.keys.shape[2] - layout.longest, None)
            past.keys[:, :, free], past.values[:, :, free] = key, value
            key, value = past
        mixed = mix(query, key, value, visible, self.dropout if self.training else 0.0)
        return self.out(_joined(mixed, layout))  # type: ignore[no-any-return]

    def weights(self, x: Tensor, layout: Layout, visible: Tensor | None, past: KeyValues | None = None) -> Tensor:
        """How much each position looks at each of its own past, (B, H, T, T), by the written-out formula."""
        assert past is None  # all positions are given at once
        query, key, _ = _heads(layout.pad(self.qkv(x)), 3, self.heads)
        return attention_weights(query, key, visible)


class EncoderDecoderAttention(nn.Module):
    """h heads over the encoder's states, which may have a width of their own."""

    def __init__(self, width: int, heads: int, dropout: float, memory_width: int) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.query = nn.Linear(width, width)
        self.memory = nn.Linear(memory_width, 2 * width)  # keys, then values
        self.out = nn.Linear(width, width)

    def remember(self, projected: Tensor, layout: Layout) -> KeyValues:
        """The keys and values of the encoder's states, which `memory` has made of them, (N, 2D)."""
        key, value = _heads(layout.pad(projected), 2, self.heads)
        return KeyValues(key, value)

    def forward(self, x: Tensor, layout: Layout, memory: KeyValues, visible: Tensor | None) -> Tensor:
        """(N, D) -> (N, D); `visible` is that of the memory."""
        (query,) = _heads(layout.pad(self.query(x)), 1, self.heads)
        mixed = mix(query, *memory, visible, self.dropout if self.training else 0.0)
        return self.out(_joined(mixed, layout))  # type: ignore[no-any-return]

    def weights(self, x: Tensor, layout: Layout, memory: KeyValues, visible: Tensor | None) -> Tensor:
        """How much each position looks at each of the memory, (B, H, T, S), by the written-out formula."""
        (query,) = _heads(layout.pad(self.query(x)), 1, self.heads)
        return attention_weights(query, memory.keys, visible)


def _heads(block: Tensor, parts: int, heads: int) -> tuple[Tensor, ...]:
    """(B, T, parts · H · d) -> so many (B, H, T, d)."""
    return block.view(*block.shape[:2], parts, heads, -1).permute(2, 0, 3, 1, 4).unbind(0)


def _joined(mixed: Tensor, layout: Layout) -> Tensor:
    """(B, H, T, d) -> (N, D)."""
    return layout.unpad(mixed.transpose(1, 2).flatten(-2))
