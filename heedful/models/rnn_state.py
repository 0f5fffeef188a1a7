"""What a recurrent decoder knows of the source, and what it carries from word to word."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from heedful.nn.scores import KeyedMemory


@dataclass(frozen=True)
class RnnMemory:
    """What is computed once of B source sentences: the context c, and for attention all states."""

    context: Tensor  # (B, D)
    states: KeyedMemory | None

    def keep(self, sentences: Tensor) -> RnnMemory:
        """The memory of these sentences."""
        states = None if self.states is None else self.states.keep(sentences)
        return RnnMemory(self.context.index_select(0, sentences), states)

    def first(self, count: int) -> RnnMemory:
        """That of the first so many sentences, not copied."""
        return RnnMemory(self.context[:count], None if self.states is None else self.states.first(count))


@dataclass(frozen=True)
class RnnState:
    """K unfinished hypotheses of each of B sentences: the decoder's state after each, and what it can look at."""

    memory: RnnMemory
    hidden: tuple[Tensor, ...]  # (L, B, K, D) each; an LSTM has two

    @property
    def sentences(self) -> int:
        """How many sentences there are."""
        return self.hidden[0].shape[1]

    def reorder(self, parents: Tensor) -> RnnState:
        """Hypothesis k of each sentence goes on from hypothesis parents[b, k] of the same sentence; parents (B, K)."""
        index = parents[None, :, :, None]
        hidden = (h.gather(2, index.expand(len(h), -1, -1, h.shape[-1])) for h in self.hidden)
        return RnnState(self.memory, tuple(hidden))

    def keep(self, sentences: Tensor) -> RnnState:
        """Only these sentences go on."""
        return RnnState(self.memory.keep(sentences), tuple(h.index_select(1, sentences) for h in self.hidden))

    def first(self, count: int) -> RnnState:
        """Only the first so many sentences go on."""
        return RnnState(self.memory.first(count), tuple(h[:, :count] for h in self.hidden))
