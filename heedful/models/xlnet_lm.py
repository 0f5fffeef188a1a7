"""XLNet as a language model: its head, and what it is from left to right.

The order in which tokens are predicted is then that in which they stand. What comes after token t is said by the query
stream at place t + 1, which sees the contents of places 0 … t:

    log P(w_1 … w_n | w_0) = Σ_t log softmax(g_t Eᵀ + b)[w_t],     g_t sees h_0 … h_{t-1}

A content sees none that comes later, so that keys and values are kept while a text is written; distances are relative,
and no position runs out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.models.causal_state import prompt_state
from heedful.models.language_model import LanguageModel, packed_product
from heedful.models.transformer_state import TransformerState
from heedful.models.xlnet import Xlnet, XlnetConfig
from heedful.nn.cross_entropy import summed_cross_entropy
from heedful.nn.packed_linear import PackedLinear
from heedful.nn.relative_attention import Slots, distance_sinusoids
from heedful.schema import Batch, Group


class LmHead(nn.Module):
    """The token embedding's matrix and a bias: logits over the vocabulary."""

    def __init__(self, config: XlnetConfig) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, states: Tensor, matrix: Tensor) -> Tensor:
        """(M, D) and the tied matrix (V, D) -> (M, V)."""
        return F.linear(states, matrix, self.bias)


@dataclass(frozen=True)
class XlnetState:
    """Where the writing of B texts with K hypotheses each stands. All prompts end at the same place, which is -1."""

    cache: TransformerState
    places: Tensor  # (filled,) where the tokens in the slots stand
    distances: tuple[Tensor, ...]  # of each layer, the keys of the distances 0, 1, 2 …, (H, P, d)

    def reorder(self, parents: Tensor) -> XlnetState:
        """Hypothesis k of each text goes on from hypothesis parents[b, k] of the same text; parents (B, K)."""
        return replace(self, cache=self.cache.reorder(parents))

    def keep(self, sentences: Tensor) -> XlnetState:
        """Only these texts (B',) go on."""
        return replace(self, cache=self.cache.keep(sentences))


class XlnetForPretraining(LanguageModel):
    """XLNet with the head of its permutation language model."""

    encoder: Xlnet

    def __init__(self, config: XlnetConfig) -> None:
        super().__init__()
        self.encoder = Xlnet(config, pooler=False)
        self.lm = LmHead(config)
        self.packed_head: PackedLinear | None = None

    def logits(self, states: Tensor) -> Tensor:
        """Logits over the vocabulary at states of either stream, (…, D) -> (…, V)."""
        if self.packed_head is not None:
            return self.packed_head(states)  # type: ignore[no-any-return]
        return self.lm(states, self.encoder.token_matrix)  # type: ignore[no-any-return]

    def loss(self, states: Tensor, labels: Tensor) -> Tensor:
        """Of what stands at each of M predicted places."""
        return summed_cross_entropy(self.logits(states), labels)

    def next_states(self, batch: Batch) -> Tensor:
        """The query stream's states one place after each token, (N, D)."""
        longer, after = _with_next(batch)
        return self.encoder.predictions(longer, order=longer.positions, targets=after).last

    def start(self, read: Batch, hypotheses: int, longest: int) -> XlnetState:
        """The keys and values of what was read, and those of all distances there will be."""
        encoder = self.encoder
        full = replace(read, groups=tuple(group for group in read.groups if group.length))
        views = (
            encoder.views(full, order=read.positions) if full.groups else None
        )  # none was longer than its last token
        x, pairs = encoder.embeddings.token(read.ids), list[tuple[Tensor, Tensor]]()
        for layer in encoder.blocks:
            x, pair = layer.read(x, views) if views is not None else (x, (x, x))
            pairs.append(pair)
        cache = prompt_state(read.lengths, pairs, longest * hypotheses, x, encoder.config.n_head).cache
        farthest = cache.filled + longest
        sinusoids = distance_sinusoids(farthest, farthest + 1, encoder.width).flip(0).to(x.device)
        places = torch.arange(-cache.filled, 0, device=x.device)
        return XlnetState(cache, places, tuple(layer.attention.distance_keys(sinusoids) for layer in encoder.blocks))

    def step(self, tokens: Tensor, state: XlnetState) -> tuple[Tensor, XlnetState]:
        """Each hypothesis takes in its newest token, and the query for the next one sees it too."""
        cache, (count, hypotheses) = state.cache, tokens.shape
        seen, filled = cache.seen(count, hypotheses), cache.filled + hypotheses
        places = torch.cat([state.places, state.places.new_full((hypotheses,), cache.time)])
        h = self.encoder.embeddings.token(tokens)
        g = self.encoder.embeddings.mask_emb.expand_as(h)
        for layer, pair, every in zip(self.encoder.blocks, cache.past, state.distances, strict=True):
            near = every[:, cache.time - places], every[:, cache.time + 1 - places]
            h, g = layer.step((h, g), Slots(*pair.first(filled), near, seen))
        return self.logits(g), replace(state, cache=cache.after(seen, hypotheses), places=places)

    def pack_head(self) -> None:
        """The product with the token matrix."""
        self.packed_head = packed_product(self.encoder.token_matrix, self.lm.bias)


def _with_next(batch: Batch) -> tuple[Batch, Tensor]:
    """Each sequence with one more token, which nobody but itself sees, and the places after those there were, (N,)."""
    lengths = tuple(length + 1 for length in batch.lengths)
    owner = torch.arange(len(lengths)).repeat_interleave(torch.tensor(batch.lengths)).to(batch.ids.device)
    places = torch.arange(len(batch.ids), device=batch.ids.device) + owner
    ids, segments = (x.new_zeros(sum(lengths)).scatter_(0, places, x) for x in (batch.ids, batch.segments))
    positions = torch.cat([torch.arange(length, device=batch.ids.device) for length in lengths])
    return Batch(ids, segments, positions, lengths, _longer(batch.groups)), places + 1


def _longer(groups: Sequence[Group]) -> tuple[Group, ...]:
    found, start = list[Group](), 0
    for group in groups:
        found.append(Group(start, group.count, group.length + 1))
        start += group.count * (group.length + 1)
    return tuple(found)
