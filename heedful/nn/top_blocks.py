"""The best few of very many, without sorting them all: first the best blocks, then the best inside those."""

from __future__ import annotations

import torch
from torch import Tensor

# Of a vocabulary, in which the best symbols are looked for: about the square root of its size is fastest.
BLOCK = 64


def best_of_all(values: Tensor, sums: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """The greatest of values + sums, (B, K, V) + (B, K), of each sentence: they, their hypotheses and their symbols.

    What topk(count) finds among all of a sentence, but faster: they stand in those `count` blocks whose greatest are
    the greatest, or in what is left of a vocabulary after its last block.
    """
    sentences, hypotheses, vocabulary = values.shape
    blocks = vocabulary // BLOCK
    if hypotheses * blocks <= count:
        totals, places = (values + sums[..., None]).flatten(1).topk(count)
        return totals, places // vocabulary, places % vocabulary
    whole = blocks * BLOCK
    cut = values[..., :whole].view(sentences, hypotheses, blocks, BLOCK)
    chosen = (cut.amax(-1) + sums[..., None]).flatten(1).topk(count).indices  # (B, count)
    parents, numbers = chosen // blocks, chosen % blocks
    rows = torch.arange(sentences, device=values.device)[:, None]
    inside = cut[rows, parents, numbers] + sums.gather(1, parents)[..., None]  # (B, count, BLOCK)
    left = values[..., whole:] + sums[..., None]
    totals, places = torch.cat([inside.flatten(1), left.flatten(1)], dim=1).topk(count)
    slots = (places // BLOCK).clamp_max(count - 1)
    parents, symbols = parents.gather(1, slots), numbers.gather(1, slots) * BLOCK + places % BLOCK
    if whole < vocabulary:
        behind = places - count * BLOCK  # from 0 on where it stands in no block
        parents = torch.where(behind < 0, parents, behind // (vocabulary - whole))
        symbols = torch.where(behind < 0, symbols, whole + behind % (vocabulary - whole))
    return totals, parents, symbols
