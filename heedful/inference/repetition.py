"""A penalty on what was said before: Keskar et al., "CTRL", 2019. For any step function of `heedful.decoding`.

logit / θ  where it is positive,  logit · θ  where it is negative,  for every symbol that has been read or said
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from heedful.errors import HeedfulError


@dataclass(frozen=True)
class Recalling:
    """The state of a decoder, and the symbols that each of its hypotheses has met."""

    state: Any
    met: Tensor  # (B, K, V)

    def reorder(self, parents: Tensor) -> Recalling:
        """As the state."""
        index = parents[..., None].expand(-1, -1, self.met.shape[-1])
        return Recalling(self.state.reorder(parents), self.met.gather(1, index))

    def keep(self, sentences: Tensor) -> Recalling:
        """As the state."""
        return Recalling(self.state.keep(sentences), self.met.index_select(0, sentences))


def recalling(state: Any, prompts: Sequence[Sequence[int]], vocab_size: int, device: str) -> Recalling:
    """The state after prompts, whose symbols have been met."""
    met = torch.zeros(len(prompts), 1, vocab_size, dtype=torch.bool, device=device)
    for row, ids in enumerate(prompts):
        met[row, 0, list(ids)] = True
    return Recalling(state, met)


def penalised(step: Callable[[Tensor, Any], tuple[Tensor, Any]], penalty: float) -> Callable[[Tensor, Any], Any]:
    """The step with a penalty, 1 for none, on all that its hypotheses have met."""
    if not penalty > 0:
        raise HeedfulError(f"a repetition penalty of {penalty:g}", remedy="use 1 for none, or more")

    def taken(tokens: Tensor, state: Recalling) -> tuple[Tensor, Recalling]:
        met = state.met.scatter(-1, tokens[..., None], True)
        logits, after = step(tokens, state.state)
        weighed = torch.where(logits > 0, logits / penalty, logits * penalty)
        return torch.where(met, weighed, logits), Recalling(after, met)

    return taken
