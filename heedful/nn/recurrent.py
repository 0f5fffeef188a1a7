"""Recurrent layers over the runs of a flat tensor: no padding, each run by itself."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence


def packed_order(lengths: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The rows of runs step by step, and how many runs take part in each step, which are fewer and fewer:

        lengths  2    3            first step  second  third
        rows     0 1  2 3 4   ->   2 0         3 1     4         sizes 2 2 1

    In every step the longest runs come first, so that those which go on are always the first ones of the step before.
    """
    count = torch.tensor(lengths, dtype=torch.long)
    time = torch.cat([torch.arange(n) for n in (0, *lengths)])
    rank = count.argsort(descending=True, stable=True).argsort().repeat_interleave(count)
    return (time * len(lengths) + rank).argsort(), time.bincount()


def over_runs(layer: nn.RNNBase, x: Tensor, lengths: Sequence[int]) -> Tensor:
    """The outputs of an RNN, GRU or LSTM over each run of `lengths` rows of x: (R, D) -> (R, its width).

    With two directions the width is twice that of one.
    """
    order, sizes = packed_order(lengths)
    if not len(order):
        return x.new_zeros(0, layer.hidden_size * (1 + layer.bidirectional))
    order = order.to(x.device)
    outputs: Tensor = layer(PackedSequence(x[order], sizes))[0].data
    return outputs[order.argsort()]
