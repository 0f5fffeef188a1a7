"""Recurrent layers over runs: each run as if it were alone, and torch's own packing as the judge of the order."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils.rnn import pack_sequence

from heedful.nn.recurrent import over_runs, packed_order


@given(st.lists(st.integers(1, 6), min_size=1, max_size=6))
def test_the_order_is_that_of_torch(lengths: list[int]) -> None:
    rows = torch.arange(sum(lengths))
    longest_first = sorted(rows.split(lengths), key=lambda run: -len(run))
    expected = pack_sequence(longest_first)
    order, sizes = packed_order(lengths)
    assert torch.equal(order, expected.data) and torch.equal(sizes, expected.batch_sizes)


def test_runs_without_rows_take_no_part() -> None:
    order, sizes = packed_order([0, 2, 0, 3])
    assert order.tolist() == [2, 0, 3, 1, 4] and sizes.tolist() == [2, 2, 1]
    assert [len(x) for x in packed_order([])] == [len(x) for x in packed_order([0, 0])] == [0, 0]


def layers() -> list[nn.RNNBase]:
    torch.manual_seed(0)
    return [
        nn.LSTM(5, 4, bidirectional=True),
        nn.LSTM(5, 3, 2, bidirectional=True),
        nn.GRU(5, 4),
        nn.RNN(5, 4, 3),
    ]


@pytest.mark.parametrize("kind", range(4))
@settings(max_examples=25, deadline=None)
@given(lengths=st.lists(st.integers(0, 6), max_size=6), seed=st.integers(0, 2**16))
def test_each_run_is_as_if_alone(kind: int, lengths: list[int], seed: int) -> None:
    layer = layers()[kind]
    x = torch.randn(sum(lengths), 5, generator=torch.Generator().manual_seed(seed))
    found = over_runs(layer, x, lengths)
    assert found.shape == (len(x), layer.hidden_size * (2 if layer.bidirectional else 1))
    for run, outputs in zip(x.split(lengths), found.split(lengths), strict=True):
        if len(run):
            torch.testing.assert_close(outputs, layer(run)[0], rtol=1e-5, atol=1e-6)


def test_gradients_stay_within_their_run() -> None:
    layer = layers()[0]
    x = torch.randn(6, 5, requires_grad=True)
    over_runs(layer, x, [2, 1, 3])[2].sum().backward()
    assert x.grad is not None
    assert [bool(row.any()) for row in x.grad] == [False, False, True, False, False, False]
