"""Recurrent layers over the runs of a flat tensor: no padding, each run by itself.

The state of a layer is a tuple of tensors (L, B, D): one of a plain RNN or a GRU, two of an LSTM.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from heedful.nn.ragged import Layout

CELLS: dict[str, Callable[..., nn.RNNBase]] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


def layers_of(
    cell: str, inputs: int, width: int, layers: int, dropout: float, bidirectional: bool = False
) -> nn.RNNBase:
    """torch's layers of this cell (rnn, gru or lstm), with dropout between them."""
    between = dropout if layers > 1 else 0.0
    return CELLS[cell](inputs, width, layers, dropout=between, bidirectional=bidirectional)


def longest_first(lengths: Sequence[int]) -> Tensor:
    """The numbers of the runs, longest first, equally long ones in their order."""
    return torch.tensor(lengths, dtype=torch.long).argsort(descending=True, stable=True)


def packed_order(lengths: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The rows of runs step by step, and how many runs take part in each step, which are fewer and fewer:

        lengths  2    3            first step  second  third
        rows     0 1  2 3 4   ->   2 0         3 1     4         sizes 2 2 1

    In every step the longest runs come first, so that those which go on are always the first ones of the step before.
    """
    count = torch.tensor(lengths, dtype=torch.long)
    time = torch.cat([torch.arange(n) for n in (0, *lengths)])
    rank = longest_first(lengths).argsort().repeat_interleave(count)
    return (time * len(lengths) + rank).argsort(), time.bincount()


def reordered(x: Tensor, order: Tensor) -> Tensor:
    """The rows of x in this order, which names each once; the gradient is a copy too, as that of x[order] is not."""
    return Layout(len(order), 1, order).unpad(x[:, None])


def put_back(x: Tensor, order: Tensor) -> Tensor:
    """What `reordered` has been given."""
    return Layout(len(order), 1, order).pad(x)[:, 0]


def over_runs(layer: nn.RNNBase, x: Tensor, lengths: Sequence[int], first: Sequence[Tensor] | None = None) -> Tensor:
    """The outputs of an RNN, GRU or LSTM over each run of `lengths` rows of x: (R, D) -> (R, its width).

    With two directions the width is twice that of one. `first` is the state to begin with, zero if there is none.
    """
    if _float32_only(layer, x):
        with torch.autocast(x.device.type, enabled=False):
            return over_runs(layer, x.float(), lengths, None if first is None else [state.float() for state in first])
    order, sizes = packed_order(lengths)
    if not len(order):
        return x.new_zeros(0, layer.hidden_size * (1 + layer.bidirectional))
    if first is not None:
        runs = longest_first(lengths)[: int(sizes[0])].to(x.device)
        first = [state.index_select(1, runs) for state in first]
    order = order.to(x.device)
    outputs: Tensor = layer(PackedSequence(reordered(x, order), sizes), _as_torch_has_it(first))[0].data
    return put_back(outputs, order)


def through_runs(
    layer: nn.RNNBase, x: Tensor, lengths: Sequence[int], first: Sequence[Tensor]
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """As `over_runs` of layers that read one way, with the state after each run; an empty run leaves `first` as it is.

    Runs of one length, as training has them, are computed as a block, which is faster.
    """
    if _float32_only(layer, x):
        with torch.autocast(x.device.type, enabled=False):
            return through_runs(layer, x.float(), lengths, [state.float() for state in first])
    if not len(x):
        return x.new_zeros(0, layer.hidden_size), tuple(first)
    if len(set(lengths)) == 1:
        block = x.view(len(lengths), lengths[0], -1).transpose(0, 1).contiguous()
        outputs, after = layer(block, _as_torch_has_it(first))
        return outputs.transpose(0, 1).flatten(0, 1), after if isinstance(after, tuple) else (after,)
    order, sizes = packed_order(lengths)
    runs = longest_first(lengths)[: int(sizes[0])].to(x.device)
    order = order.to(x.device)
    begun = _as_torch_has_it([state.index_select(1, runs) for state in first])
    packed, after = layer(PackedSequence(reordered(x, order), sizes), begun)
    ended = after if isinstance(after, tuple) else (after,)
    states = tuple(state.index_copy(1, runs, last.to(state.dtype)) for state, last in zip(first, ended, strict=True))
    return put_back(packed.data, order), states


def one_step(layer: nn.RNNBase, x: Tensor, state: Sequence[Tensor]) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The output (B, its width) for one input each (B, D), and the state after it."""
    if _float32_only(layer, x):
        with torch.autocast(x.device.type, enabled=False):
            return one_step(layer, x.float(), [tensor.float() for tensor in state])
    outputs, after = layer(x[None], _as_torch_has_it(state))
    return outputs[0], after if isinstance(after, tuple) else (after,)


def _float32_only(layer: nn.RNNBase, x: Tensor) -> bool:
    """Whether bfloat16 is asked for here and this processor cannot run such a layer in it."""
    cell = layer.mode.partition("_")[0].lower()
    return x.device.type == "cpu" and torch.is_autocast_enabled("cpu") and not runs_in_bfloat16(cell)


@lru_cache
def runs_in_bfloat16(cell: str) -> bool:
    """Whether torch can train layers of this cell in bfloat16 on this processor, by a look; it cannot everywhere.

    oneDNN has an LSTM in bfloat16 for some vector instructions and none for others (AVX2), and torch does without
    oneDNN for no reason of precision.
    """
    with torch.random.fork_rng(devices=[]), torch.enable_grad(), torch.autocast("cpu", torch.bfloat16):
        try:
            CELLS[cell](1, 1)(torch.zeros(1, 1, 1))[0].sum().backward()
        except RuntimeError:
            return False
    return True


def _as_torch_has_it(state: Sequence[Tensor] | None) -> Tensor | tuple[Tensor, ...] | None:
    """A tuple for an LSTM, the tensor itself for the others."""
    if state is None:
        return None
    tensors = tuple(tensor.contiguous() for tensor in state)
    return tensors if len(tensors) == 2 else tensors[0]
