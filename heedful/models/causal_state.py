"""What a causal Transformer carries from symbol to symbol while it writes: keys and values of all it has read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from heedful.models.transformer_state import TransformerState
from heedful.nn.decoder_attention import KeyValues


@dataclass(frozen=True)
class CausalState:
    """Where the writing of B texts with K hypotheses each stands.

    Prompts end at the same column of the cache, whatever their lengths, and what hypotheses add comes after it:

        a b c | 1 2 …        slots of the prompts, then of the hypotheses
        . d e | 1 2 …
    """

    cache: TransformerState
    positions: Tensor  # (B,) of the next symbol

    def reorder(self, parents: Tensor) -> CausalState:
        """Hypothesis k of each text goes on from hypothesis parents[b, k] of the same text; parents (B, K)."""
        return replace(self, cache=self.cache.reorder(parents))

    def keep(self, sentences: Tensor) -> CausalState:
        """Only these texts (B',) go on."""
        return CausalState(self.cache.keep(sentences), self.positions.index_select(0, sentences))

    def after(self, seen: Tensor | None, hypotheses: int) -> CausalState:
        """The state when K hypotheses have filled their slots."""
        return CausalState(self.cache.after(seen, hypotheses), self.positions + 1)


def prompt_state(
    lengths: Sequence[int], layers: Sequence[tuple[Tensor, Tensor]], slots: int, like: Tensor, heads: int
) -> CausalState:
    """The state after flat prompts of these lengths, of which each layer has keys and values (N, D).

    `slots` are free for what is to come; `like` tells type and device, and has the width.
    """
    longest, count = max(lengths, default=0), len(lengths)
    size = torch.tensor(lengths, device=like.device)
    rows = torch.arange(count, device=like.device).repeat_interleave(size)
    firsts = longest - size  # the column at which each prompt begins
    columns = torch.arange(int(size.sum()), device=like.device) - (size.cumsum(0) - size - firsts)[rows]
    past = []
    for pair in layers:
        caches = [like.new_zeros(count, heads, longest + slots, like.shape[-1] // heads) for _ in pair]
        for cache, flat in zip(caches, pair, strict=True):
            cache[rows, :, columns] = flat.reshape(len(flat), heads, cache.shape[-1])
        past.append(KeyValues(*caches))
    visible = None
    if min(lengths, default=0) < longest:
        visible = (torch.arange(longest, device=like.device) >= firsts[:, None])[:, None]  # (B, 1, longest)
    return CausalState(TransformerState(None, tuple(past), visible, filled=longest), size)
