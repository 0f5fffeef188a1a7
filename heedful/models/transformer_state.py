"""What a Transformer carries from symbol to symbol while it decodes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from heedful.nn.decoder_attention import KeyValues, Memory


@dataclass(frozen=True)
class TransformerState:
    """Where the decoding of B sentences with K hypotheses each stands.

    What a hypothesis adds to the past at time t stays in slot t · K + k of its sentence. When hypotheses are
    reordered nothing is moved: it is only noted which slots the ancestors of each one have filled.
    """

    memory: Memory
    past: tuple[KeyValues, ...]  # of each layer, (B, H, slots, d); steps write into it
    visible: Tensor | None  # (B, K, slots), True where an ancestor has been or will be; None if K = 1, which sees all
    beam: int
    time: int = 0

    @property
    def filled(self) -> int:
        """How many slots hold something."""
        return self.time * self.beam

    def reorder(self, parents: Tensor) -> TransformerState:
        """Hypothesis k of each sentence goes on from hypothesis parents[b, k] of the same sentence; parents (B, K)."""
        if self.visible is None:
            return self
        past, future = self.visible.tensor_split([self.filled], dim=-1)
        inherited = past.gather(1, parents[..., None].expand_as(past))
        return replace(self, visible=torch.cat([inherited, future], dim=-1))

    def keep(self, sentences: Tensor) -> TransformerState:
        """Only these sentences (B',) go on."""
        visible = None if self.visible is None else self.visible.index_select(0, sentences)
        past = tuple(KeyValues(*(self._filled_only(x, sentences) for x in pair)) for pair in self.past)
        return replace(self, memory=self.memory.only(sentences), past=past, visible=visible)

    def _filled_only(self, cache: Tensor, sentences: Tensor) -> Tensor:
        """Some sentences of a cache: there is nothing to copy yet in slots of steps to come."""
        kept = cache.new_empty(len(sentences), *cache.shape[1:])
        kept[:, :, : self.filled] = cache[:, :, : self.filled].index_select(0, sentences)
        return kept
