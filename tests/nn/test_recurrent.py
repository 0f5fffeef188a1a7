"""Recurrent layers over runs: each run as if it were alone, and torch's own packing as the judge of the order."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils.rnn import pack_sequence

from heedful.nn import recurrent
from heedful.nn.recurrent import (
    layers_of,
    longest_first,
    one_step,
    over_runs,
    packed_order,
    put_back,
    reordered,
    runs_in_bfloat16,
)


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


CELLS = {"rnn": 1, "gru": 1, "lstm": 2}


def layer_and_state(cell: str, runs: int) -> tuple[nn.RNNBase, list[torch.Tensor]]:
    torch.manual_seed(0)
    return layers_of(cell, 5, 4, layers=2, dropout=0.0), [torch.randn(2, runs, 4) for _ in range(CELLS[cell])]


@torch.no_grad()
@pytest.mark.parametrize("cell", CELLS)
def test_each_run_begins_with_its_own_state(cell: str) -> None:
    lengths = [2, 0, 4, 1, 4]
    layer, first = layer_and_state(cell, len(lengths))
    x = torch.randn(sum(lengths), 5)
    outputs = over_runs(layer, x, lengths, first).split(lengths)
    for number, (run, found) in enumerate(zip(x.split(lengths), outputs, strict=True)):
        state = [tensor[:, number] for tensor in first]
        if len(run):
            torch.testing.assert_close(found, layer(run, tuple(state) if cell == "lstm" else state[0])[0])


@torch.no_grad()
@pytest.mark.parametrize("cell", CELLS)
def test_steps_are_the_run(cell: str) -> None:
    layer, first = layer_and_state(cell, 3)
    x = torch.randn(3, 4, 5)
    expected = over_runs(layer, x.flatten(0, 1), [4, 4, 4], first).view(3, 4, 4)
    state: tuple[torch.Tensor, ...] = tuple(first)
    for time in range(4):
        output, state = one_step(layer, x[:, time], state)
        torch.testing.assert_close(output, expected[:, time])
    assert len(state) == CELLS[cell]


@pytest.mark.processor
@pytest.mark.parametrize("cell", CELLS)
def test_every_cell_is_trained_under_bfloat16_on_every_processor(cell: str) -> None:
    lengths = [2, 4]
    layer, first = layer_and_state(cell, len(lengths))
    x = torch.randn(sum(lengths), 5)
    expected = over_runs(layer, x, lengths, first).detach()
    generator = torch.get_rng_state()
    with torch.autocast("cpu", torch.bfloat16):
        found = over_runs(layer, x.bfloat16(), lengths, [state.bfloat16() for state in first])
        stepped, _ = one_step(layer, x[:2].bfloat16(), [state.bfloat16() for state in first])
    (found.float().sum() + stepped.float().sum()).backward()
    assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in layer.parameters())
    torch.testing.assert_close(found.float(), expected, rtol=0.05, atol=0.05)
    assert torch.equal(generator, torch.get_rng_state())


@pytest.mark.parametrize("cell", CELLS)
def test_what_a_processor_has_not_in_bfloat16_is_float32(cell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    layer, first = layer_and_state(cell, 2)
    x = torch.randn(6, 5).bfloat16().float()
    first = [state.bfloat16().float() for state in first]
    expected, (stepped, _) = over_runs(layer, x, [2, 4], first), one_step(layer, x[:2], first)
    monkeypatch.setattr("heedful.nn.recurrent.runs_in_bfloat16", lambda cell: False)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(over_runs(layer, x.bfloat16(), [2, 4], [state.bfloat16() for state in first]), expected)
        assert torch.equal(one_step(layer, x[:2].bfloat16(), [state.bfloat16() for state in first])[0], stepped)


def test_the_look_at_a_processor_finds_what_torch_does(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unable(nn.LSTM):
        def forward(self, *inputs: object) -> None:  # type: ignore[override]
            raise RuntimeError("could not create a primitive descriptor for the LSTM forward propagation primitive")

    monkeypatch.setitem(recurrent.CELLS, "unable", Unable)
    assert runs_in_bfloat16("rnn") and not runs_in_bfloat16("unable")


def test_only_several_layers_have_dropout_between_them() -> None:
    assert [layers_of("gru", 3, 4, layers, 0.5).dropout for layers in (1, 2)] == [0.0, 0.5]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6))
def test_rows_are_put_back_with_their_gradients(lengths: list[int]) -> None:
    assert longest_first(lengths).tolist() == sorted(range(len(lengths)), key=lambda run: -lengths[run])
    order, _ = packed_order(lengths)
    x = torch.arange(3.0 * len(order)).view(-1, 3).requires_grad_()
    moved = reordered(x, order)
    assert torch.equal(moved, x[order]) and torch.equal(put_back(moved, order), x)
    weights = torch.arange(len(order)) + 1.0
    (slopes,) = torch.autograd.grad((put_back(moved.tanh(), order) * weights[:, None]).sum(), x)
    torch.testing.assert_close(slopes, (1 - x.tanh() ** 2) * weights[:, None])
