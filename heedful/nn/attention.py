"""Attention: the written-out formula with masks, and the padding-free path that is proved equal to it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.nn.dropout import drop
from heedful.nn.positions import Rotation
from heedful.schema import Group

FEW_QUERIES = 8
# Numbers that an instruction of AVX-512 takes at once. Over fewer, torch's softmax takes ten times as long.
AT_ONCE = 16


@dataclass(frozen=True)
class Places:
    """What the places of equally long sequences mean to attention, beyond what the embeddings say of them."""

    visible: Tensor | None = None  # as in `attention_weights`; broadcasts to (b, H, T, T)
    rotation: Rotation | None = None


def attend(query: Tensor, key: Tensor, value: Tensor, visible: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Z = softmax(Q Kᵀ / √d_k) V, written out; gives Z and the weights.

    query (…, T, d_k), key (…, S, d_k), value (…, S, d_v); `visible` is that of `attention_weights`.
    """
    weights = attention_weights(query, key, visible)
    return weights @ value, weights


def attention_weights(query: Tensor, key: Tensor, visible: Tensor | None = None) -> Tensor:
    """softmax(Q Kᵀ / √d_k), (…, T, S).

    `visible` broadcasts to that shape and is True where a query may look; numbers are added to the scores instead. A
    row that sees nothing gets weights of zero.
    """
    products, scale = query @ key.transpose(-2, -1), 1 / math.sqrt(query.shape[-1])
    if visible is not None and visible.dtype != torch.bool:
        return _softmax(torch.add(visible, products, alpha=scale))
    scores = products * scale
    if visible is None:
        return _softmax(scores)
    # Softmax over nothing but -inf is NaN; zero is what "looks at nothing" means.
    weights = torch.softmax(scores.masked_fill(~visible, -math.inf), dim=-1)
    return torch.where(visible.any(dim=-1, keepdim=True), weights, torch.zeros_like(weights))


def _softmax(scores: Tensor) -> Tensor:
    """Over the last dimension; in a graph for another engine, which has any length, always as it is written."""
    places = scores.shape[-1]
    as_written = torch.compiler.is_exporting() or scores.requires_grad
    if as_written or places >= AT_ONCE or scores.device.type != "cpu":
        return torch.softmax(scores, dim=-1)
    return torch.softmax(F.pad(scores, (0, AT_ONCE - places), value=-math.inf), dim=-1)[..., :places]


def mix(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    visible: Tensor | None = None,
    dropout: float = 0.0,
    causal: bool = False,
) -> Tensor:
    """Z by the way that is fastest here, with a share of the weights dropped.

    With `causal`, which takes the place of `visible`, a position sees itself and what is before it.
    """
    # On a CPU torch's fused kernel cannot drop anything, and what it does instead is slower than writing it out; so is
    # its backward pass in bfloat16, by four times at the lengths of sentences.
    # For the few hypotheses of a beam it is slower too, up to 2.5 times: it makes a call for every head of a sentence.
    few = query.shape[-2] <= FEW_QUERIES and not causal
    if query.device.type == "cpu" and (dropout or query.dtype == torch.bfloat16 or few):
        visible = causal_visible(query.shape[-2]) if causal else visible
        return drop(attention_weights(query, key, visible), dropout) @ value
    return F.scaled_dot_product_attention(query, key, value, attn_mask=visible, dropout_p=dropout, is_causal=causal)


def padding_visible(lengths: Sequence[int]) -> Tensor:
    """The padding mask of right-padded sequences: True at the positions that hold a token, (B, 1, 1, S)."""
    count = torch.tensor(lengths)
    return (torch.arange(int(count.max()))[None, :] < count[:, None])[:, None, None, :]


def added_to_scores(visible: Tensor, like: Tensor) -> Tensor:
    """The same mask as numbers of the type of `like`, which torch's kernel would else make of it in every layer."""
    return like.new_zeros(visible.shape).masked_fill_(~visible, -math.inf)


def causal_visible(length: int) -> Tensor:
    """The sequence mask of a decoder: position t sees positions 0 … t, (T, T)."""
    return torch.ones(length, length, dtype=torch.bool).tril()


class MultiHeadSelfAttention(nn.Module):
    """h heads over the tokens of each sequence, concatenated and projected by W^O.

    Works on flat tokens: one product makes queries, keys and values of all of them, and only the attention itself
    looks at sequences, one dense block for each group of equally long ones.
    """

    def __init__(self, width: int, heads: int, dropout: float, causal: bool = False, bias: bool = True) -> None:
        """With `causal` a token sees itself and those before it, else all of its sequence."""
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.causal = causal
        self.qkv = nn.Linear(width, 3 * width, bias=bias)
        self.out = nn.Linear(width, width, bias=bias)

    def forward(
        self,
        x: Tensor,
        groups: Sequence[Group],
        rows: Tensor | None = None,
        places: Sequence[Places] | None = None,
    ) -> Tensor:
        """(N, D) -> (N, D); with `rows` (M,), only the results of these flat rows, (M, D).

        `places` has an entry for each group, for models whose attention itself looks at positions.
        """
        return self.over(self.qkv(x), groups, rows, places)

    def over(
        self,
        qkv: Tensor,
        groups: Sequence[Group],
        rows: Tensor | None = None,
        places: Sequence[Places] | None = None,
    ) -> Tensor:
        """The same from queries, keys and values that lie side by side, (N, 3 D)."""
        dropout = self.dropout if self.training else 0.0
        blocks = [
            _joined(mix(query, key, value, visible, dropout, self.causal))
            for query, key, value, visible in self._heads_of(qkv, groups, places)
        ]
        mixed = blocks[0] if len(blocks) == 1 else torch.cat(blocks)
        return self.out(mixed if rows is None else mixed[rows])  # type: ignore[no-any-return]

    def weights(self, x: Tensor, groups: Sequence[Group], places: Sequence[Places] | None = None) -> tuple[Tensor, ...]:
        """The attention map of every sequence, (H, T, T) each, by the written-out formula."""
        blocks = (
            attention_weights(query, key, causal_visible(query.shape[-2]).to(x.device) if self.causal else visible)
            for query, key, _, visible in self._heads_of(self.qkv(x), groups, places)
        )
        return tuple(one for block in blocks for one in block.unbind(0))

    def _heads_of(
        self, qkv: Tensor, groups: Sequence[Group], places: Sequence[Places] | None
    ) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor | None]]:
        """Queries, keys and values of each group, (b, H, T, d), and what its queries may see."""
        # One split and not a slice for each group, whose gradient would be as large as all of them together.
        parts = torch.split(qkv, [group.count * group.length for group in groups])
        for rows, group, place in zip(parts, groups, places or [Places()] * len(groups), strict=True):
            blocks = rows.view(group.count, group.length, 3, self.heads, -1)  # (b, T, 3, H, d)
            query, key, value = blocks.permute(2, 0, 3, 1, 4).unbind(0)
            if place.rotation is not None:
                query, key = place.rotation(query), place.rotation(key)
            # What is padded stands on the right, where a causal look never goes.
            yield query, key, value, None if self.causal else _both(place.visible, group.visible)


def _both(visible: Tensor | None, real: Tensor | None) -> Tensor | None:
    """What may be seen, and numbers to add to scores, where cells of a padded block are real too."""
    if visible is None or real is None:
        return real if visible is None else visible
    if visible.dtype != torch.bool:
        return visible.masked_fill(~real, -math.inf)
    both = visible & real
    # A padded cell far from all that is real sees whatever there is: nothing at all would be no number.
    return both | ~both.any(-1, keepdim=True)


def _joined(mixed: Tensor) -> Tensor:
    """The heads' results side by side in flat rows: (b, H, T, d) -> (b · T, H · d)."""
    return mixed.transpose(1, 2).flatten(0, 1).flatten(1)
