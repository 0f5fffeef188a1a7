"""What travels between the layers of the package.

Dimension letters, used in every shape comment:

    B  sequences in a batch            D  width of a hidden state
    N  tokens in a flat batch          H  attention heads
    T  positions of a query side       V  pieces in the vocabulary
    S  positions of a key side         L  encoder layers        K  labels

A batch has no padding. Its sequences lie one after the other in flat tensors of N tokens:

    lengths   3         2     2
    ids       a b c     d e   f g        (N,)
    positions 0 1 2     0 1   0 1        (N,)
    groups    (0, 1, 3) (3, 2, 2)        start, how many sequences, their common length

Only attention looks at sequences, and it takes each group of equally long neighbours as one dense block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Group:
    """A run of neighbouring sequences of one length: flat rows start … start + count * length."""

    start: int
    count: int
    length: int
    visible: Tensor | None = None  # (b, 1, 1, T) where a padded block holds tokens; None: everywhere


@dataclass(frozen=True)
class Batch:
    """Token sequences, flat. Sorting by length before building one keeps its groups few."""

    ids: Tensor  # (N,)
    segments: Tensor  # (N,)
    positions: Tensor  # (N,)
    lengths: tuple[int, ...]  # B numbers that add up to N
    groups: tuple[Group, ...]

    @property
    def block(self) -> Group | None:
        """What there is instead of lengths where sequences are padded, as other engines want them: their one group."""
        return next((group for group in self.groups if group.visible is not None), None)

    def to(self, device: str) -> Batch:
        """The same batch on another device."""
        if self.ids.device.type == device:
            return self
        ids, segments, positions = (x.to(device) for x in (self.ids, self.segments, self.positions))
        return Batch(ids, segments, positions, self.lengths, self.groups)


@dataclass(frozen=True)
class Selection:
    """A batch, and the places in it whose states a head looks at, sequence by sequence in the order of the answers."""

    batch: Batch
    rows: Tensor  # (R,) flat places
    counts: tuple[int, ...]  # how many of the rows each sequence has
    states: Tensor | None = None  # (R, D) the states there, where a frozen encoder has computed them before

    def to(self, device: str) -> Selection:
        """The same on another device."""
        states = None if self.states is None else self.states.to(device)
        return Selection(self.batch.to(device), self.rows.to(device), self.counts, states)


@dataclass(frozen=True)
class Bitext:
    """Sentences and their translations: what the encoder sees, what the decoder is given, and what it is to say.

    Both batches hold the pairs in the same order, sorted by the lengths of source and target, the longest first.
    """

    source: Batch  # [CLS] x1 … xm [SEP] of each of B sentences
    target: Batch  # the same B: [CLS] y1 … yn
    labels: Tensor  # (M,) y1 … yn [SEP], one for each flat row of target

    def to(self, device: str) -> Bitext:
        """The same on another device."""
        return Bitext(self.source.to(device), self.target.to(device), self.labels.to(device))


@dataclass(frozen=True)
class Encoded:
    """What an encoder gives back: the hidden states and attention maps asked for, by layer number.

    Layer 0 is the embedding output and layer i the output of the i-th encoder layer, as Hugging Face numbers them.
    Attention maps are numbered 1 … L: map i is the one inside the i-th layer; one (H, T, T) tensor a sequence.
    `memory` is what an encoder that carries a state from batch to batch wants to be given with the next one.
    """

    hidden: Mapping[int, Tensor]  # layer -> (N, D)
    attention: Mapping[int, tuple[Tensor, ...]]  # layer -> B tensors (H, T, T)
    memory: tuple[Tensor, ...] | None = None

    @property
    def last(self) -> Tensor:
        """The highest hidden state that was asked for."""
        return self.hidden[max(self.hidden)]
