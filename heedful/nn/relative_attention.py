"""Attention by content, by distance and by segment, as Transformer-XL and XLNet have it.

A query at place i gives a key at place j, which is d = i - j before it, the score

    ( (q_i + u) · k_j  +  (q_i + v) · R_d  +  (q_i + w) · s )  /  √d_k

where R_d is the projected sinusoid of the distance, s one of two vectors, for the same segment and for another one, and
u, v, w are learned and the same for all places (Hugging Face calls them r_w_bias, r_r_bias and r_s_bias). Nothing
depends on where a text begins, so states of the text before can be keys too: the memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.nn.dropout import drop
from heedful.nn.ragged import Layout
from heedful.schema import Group

# What is added to the score of a key that must not be seen. Finite, so that a query that sees nothing has weights,
# which are then made zero, and its gradient no NaN.
HIDDEN = -1e30


class KeyValues(NamedTuple):
    """What one group of sequences has to be looked at, its memory first, (H, b, S, d) each."""

    keys: Tensor
    values: Tensor


@dataclass(frozen=True)
class Sight:
    """Which queries one group of b sequences of T tokens has, and what they see of its S keys."""

    layout: Layout  # how the flat queries lie in a block (b, Q)
    length: int  # T
    first_distance: int  # where the distances S - 1 … -(T - 1) begin among those of the batch
    places: Tensor | None = None  # (b, Q) where the queries stand; None for T in order
    hidden: Tensor | None = None  # (b, Q, S) HIDDEN where a key must not be seen, else 0
    elsewhere: Tensor | None = None  # (b, Q, S) 1 where the key is in another segment, else 0
    seeing: Tensor | None = None  # (b, Q, 1) 0 for a query that sees nothing, else 1; None where all see something


class Slots(NamedTuple):
    """What K hypotheses of each of B texts see while they are written: keys and values that steps write into."""

    keys: Tensor  # (B, H, S, d), of which the last K are of the newest tokens
    values: Tensor
    near: tuple[Tensor, Tensor]  # (H, S, d) the keys of the slots' distances, from the newest token and from the next
    visible: Tensor | None  # (B, K, S) True for the ancestors of a hypothesis and itself; None for all


def distance_sinusoids(farthest: int, count: int, width: int) -> Tensor:
    """The sinusoids of the distances farthest, farthest - 1, …: all sines, then all cosines, (count, width)."""
    # In float32 from the start, as those were computed with which published weights were trained.
    frequencies = 1 / torch.pow(10000, torch.arange(0, width, 2).float() / width)
    angle = torch.arange(farthest, farthest - count, -1).float()[:, None] * frequencies
    return torch.cat([angle.sin(), angle.cos()], dim=-1)


class RelativeAttention(nn.Module):
    """H heads with the scores above. The weights have XLNet's own names and shapes."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        own = width // heads
        self.q, self.k, self.v, self.o, self.r = (nn.Parameter(torch.zeros(width, heads, own)) for _ in range(5))
        self.r_w_bias, self.r_r_bias, self.r_s_bias = (nn.Parameter(torch.zeros(heads, own)) for _ in range(3))
        self.seg_embed = nn.Parameter(torch.zeros(2, heads, own))

    def remember(self, x: Tensor, groups: Sequence[Group], memory: Tensor | None = None) -> list[KeyValues]:
        """Keys and values of flat states (N, D), group by group, after those of the memory (B, m, D)."""
        rows = [group.count * group.length for group in groups]
        own = [torch.split(x @ weight.flatten(1), rows) for weight in (self.k, self.v)]
        old = [None if memory is None else memory @ weight.flatten(1) for weight in (self.k, self.v)]
        found, first = [], 0
        for number, group in enumerate(groups):
            blocks = [part[number].view(group.count, group.length, -1) for part in own]
            past = [None if part is None else part[first : first + group.count] for part in old]
            whole = (
                new if before is None else torch.cat([before, new], 1) for before, new in zip(past, blocks, strict=True)
            )
            found.append(KeyValues(*(self._heads(block) for block in whole)))
            first += group.count
        return found

    def forward(self, x: Tensor, kept: Sequence[KeyValues], distances: Tensor, sights: Sequence[Sight]) -> Tensor:
        """What the flat queries (M, D) see, (M, H·d), not yet projected by `o`."""
        dropout = self.dropout if self.training else 0.0
        blocks = []
        for query, key_values, by_distance, sight in self._queries(x, kept, distances, sights):
            weights = drop(self._weights(query, key_values, by_distance, sight), dropout)
            mixed = (weights @ key_values.values).permute(1, 2, 0, 3).flatten(2)  # (b, Q, H·d)
            blocks.append(sight.layout.unpad(mixed))
        return blocks[0] if len(blocks) == 1 else torch.cat(blocks)

    def project(self, mixed: Tensor) -> Tensor:
        """The heads' results (M, H·d) joined by `o`, (M, D)."""
        return F.linear(mixed, self.o.flatten(1))

    def distance_keys(self, distances: Tensor) -> Tensor:
        """The projected sinusoids of some distances, (P, D) -> (H, P, d)."""
        return (distances @ self.r.flatten(1)).view(len(distances), len(self.r_w_bias), -1).transpose(0, 1)

    def fill(self, x: Tensor, slots: Slots) -> None:
        """Write keys and values of the newest tokens (B, K, D) into the last slots."""
        for kept, weight in ((slots.keys, self.k), (slots.values, self.v)):
            kept[:, :, -x.shape[1] :] = self._split(x, weight)

    def over(self, x: Tensor, slots: Slots, near: Tensor) -> Tensor:
        """What one query of each hypothesis (B, K, D) sees of the slots, at distances with the keys `near` (H, S, d).

        (B, K, H·d), not yet projected by `o`. All is in one segment, which moves all scores alike.
        """
        query = self._split(x, self.q)
        u, v = self.r_w_bias[:, None], self.r_r_bias[:, None]
        scores = (query + u) @ slots.keys.transpose(-1, -2) + (query + v) @ near.transpose(-1, -2)
        scores = scores / math.sqrt(query.shape[-1])
        if slots.visible is not None:
            scores = scores.masked_fill(~slots.visible[:, None], HIDDEN)
        return (scores.softmax(-1) @ slots.values).transpose(1, 2).flatten(2)

    def _split(self, x: Tensor, weight: Tensor) -> Tensor:
        """(B, K, D) -> (B, H, K, d)."""
        return (x @ weight.flatten(1)).view(*x.shape[:2], *self.r_w_bias.shape).transpose(1, 2)

    def weights(
        self, x: Tensor, kept: Sequence[KeyValues], distances: Tensor, sights: Sequence[Sight]
    ) -> tuple[Tensor, ...]:
        """The attention map of every sequence, (H, Q, S) each."""
        blocks = (self._weights(*found) for found in self._queries(x, kept, distances, sights))
        return tuple(one for block in blocks for one in block.unbind(1))

    def _queries(
        self, x: Tensor, kept: Sequence[KeyValues], distances: Tensor, sights: Sequence[Sight]
    ) -> Iterator[tuple[Tensor, KeyValues, Tensor, Sight]]:
        """For each group its scaled queries (H, b, Q, d), keys and values, the keys of its distances (H, P, d)."""
        scaled = x @ self.q.flatten(1) * self.q.shape[-1] ** -0.5
        every = self.distance_keys(distances)
        parts = torch.split(scaled, [_rows(sight.layout) for sight in sights])
        for rows, key_values, sight in zip(parts, kept, sights, strict=True):
            count = key_values.keys.shape[2] + sight.length - 1
            near = every[:, sight.first_distance : sight.first_distance + count]
            yield self._heads(sight.layout.pad(rows)), key_values, near, sight

    def _weights(self, query: Tensor, key_values: KeyValues, near: Tensor, sight: Sight) -> Tensor:
        """softmax of the scores, (H, b, Q, S)."""
        scale = query.shape[-1] ** -0.5
        heads, count, queries, own = query.shape
        u, v = ((bias * scale)[:, None, None] for bias in (self.r_w_bias, self.r_r_bias))
        # All sequences at once: the distances are the same for all of them.
        by_distance = (query + v).view(heads, count * queries, own) @ near.transpose(1, 2)
        keys = key_values.keys.shape[2]
        scores = _by_place(by_distance.view(heads, count, queries, near.shape[1]), sight, keys)
        if sight.hidden is not None:
            scores = scores + sight.hidden
        if sight.elsewhere is not None:
            # What both segments have in common moves all scores of a query alike, and no weight.
            w, other = (self.r_s_bias * scale)[:, None, None], self.seg_embed[1] - self.seg_embed[0]
            scores = scores + ((query + w) @ other[:, None, :, None]) * sight.elsewhere
        by_content = torch.baddbmm(
            scores.reshape(heads * count, queries, keys),
            (query + u).view(heads * count, queries, own),
            key_values.keys.reshape(heads * count, keys, own).transpose(1, 2),
        )
        weights = by_content.view(heads, count, queries, keys).softmax(-1)
        return weights if sight.seeing is None else weights * sight.seeing

    def _heads(self, block: Tensor) -> Tensor:
        """(b, T, H·d) -> (H, b, T, d)."""
        return block.view(*block.shape[:2], *self.r_w_bias.shape).permute(2, 0, 1, 3).contiguous()


def _by_place(by_distance: Tensor, sight: Sight, keys: int) -> Tensor:
    """The scores of distances S - 1 … -(T - 1), (H, b, Q, S + T - 1), as those of keys, (H, b, Q, S)."""
    if sight.places is not None:
        columns = (sight.length - 1 - sight.places)[..., None] + torch.arange(keys, device=by_distance.device)
        return by_distance.gather(-1, columns.expand(len(by_distance), -1, -1, -1))
    # The distance 0 of the next query stands one column further left: a step of one row less one column is the same
    # key again, and no number is moved.
    heads, count, queries, width = by_distance.shape
    strides = (count * queries * width, queries * width, width - 1, 1)
    return by_distance.contiguous().as_strided((heads, count, queries, keys), strides, sight.length - 1)


def _rows(layout: Layout) -> int:
    return layout.count * layout.longest if layout.cells is None else len(layout.cells)
