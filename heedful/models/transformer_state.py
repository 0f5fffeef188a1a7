"""What a Transformer carries from symbol to symbol while it decodes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from heedful.nn.decoder_attention import KeyValues, Memory, Moves

# Slots are put together when at most so large a share of them is still seen.
WORTH_MOVING = 0.7


@dataclass(frozen=True)
class TransformerState:
    """Where the decoding of B sentences with K hypotheses each stands.

    What each hypothesis adds to the past stays in a slot of its sentence. When hypotheses are reordered nothing is
    moved: it is only noted which slots the ancestors of each one have filled.
    """

    memory: Memory | None  # of a source, where there is one
    past: tuple[KeyValues, ...]  # of each layer, (B, H, slots, d); steps write into it
    visible: Tensor | None = None  # (B, K, filled), True where an ancestor has been; None where all are ancestors
    filled: int = 0  # slots
    time: int = 0

    def seen(self, sentences: int, hypotheses: int) -> Tensor | None:
        """What each of K hypotheses sees, (B, K, filled + K): its ancestors, and the slot that it fills next."""
        if self.visible is None and hypotheses == 1:
            return None
        own = torch.eye(hypotheses, dtype=torch.bool, device=self.past[0].keys.device)
        before = own.new_ones(sentences, hypotheses, self.filled) if self.visible is None else self.visible
        return torch.cat([before, own.expand(sentences, -1, -1)], dim=-1)

    def after(self, seen: Tensor | None, hypotheses: int) -> TransformerState:
        """The state when K hypotheses have filled their slots."""
        return replace(self, visible=seen, filled=self.filled + hypotheses, time=self.time + 1)

    def reorder(self, parents: Tensor) -> TransformerState:
        """Hypothesis k of each sentence goes on from hypothesis parents[b, k] of the same sentence; parents (B, K)."""
        if self.visible is None:
            everything = parents.new_ones(*parents.shape, self.filled, dtype=torch.bool)
            return self if parents.shape[1] == 1 else replace(self, visible=everything)
        return replace(self, visible=self.visible.gather(1, parents[..., None].expand(-1, -1, self.filled)))

    def compact(self) -> TransformerState:
        """The same in fewer slots: those that are still seen move to where nothing is; the old state is of no use then.

        Most hypotheses die out, and what they left would be read in every step to come.
        """
        if self.visible is None:
            return self
        used = self.visible.any(1)
        slots = int(used.sum(1).max())
        if slots > self.filled * WORTH_MOVING:
            return self
        sentences, behind = used[:, slots:].nonzero().unbind(1)
        number = used[:, slots:].cumsum(1)[sentences, behind] - 1  # among those of its sentence
        unused_first = used[:, :slots].byte().argsort(dim=1, stable=True)
        places, sources = unused_first[sentences, number], slots + behind
        for x in (*(x for pair in self.past for x in pair), self.visible):
            x[sentences, :, places] = x[sentences, :, sources]
        return replace(self, visible=self.visible[..., :slots], filled=slots)

    def keep(self, sentences: Tensor) -> TransformerState:
        """Only these sentences (B',) go on; the old state cannot be used again."""
        moves = Moves.to(sentences)
        visible = None if self.visible is None else self.visible.index_select(0, sentences)
        memory = None if self.memory is None else self.memory.only(moves)
        for pair in self.past:
            pair.first(self.filled).only(moves)  # there is nothing to move yet in slots of steps to come
        past = tuple(KeyValues(*(x.narrow(0, 0, moves.count) for x in pair)) for pair in self.past)
        return replace(self, memory=memory, past=past, visible=visible)
