"""Flat rows and padded blocks: torch's own padding as the judge, and gradients as if torch had indexed."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.utils.rnn import pad_sequence

from heedful.nn.ragged import Layout, layout_of, pad, unpad

LENGTHS = st.lists(st.integers(0, 5), min_size=1, max_size=6)
CPU = torch.device("cpu")


@settings(deadline=None)
@given(LENGTHS, st.sampled_from([(), (3,), (2, 3)]), st.integers(0, 2**16))
def test_padding_is_that_of_torch_and_comes_off_again(lengths: list[int], width: tuple[int, ...], seed: int) -> None:
    flat = torch.randn(sum(lengths), *width, generator=torch.Generator().manual_seed(seed))
    block = pad(flat, lengths)
    assert torch.equal(block, pad_sequence(list(flat.split(lengths)), batch_first=True))
    assert torch.equal(unpad(block, lengths), flat)


@pytest.mark.parametrize("lengths", [[3, 1, 2], [2, 0, 3], [2, 2]])
def test_gradients_are_those_of_differences(lengths: list[int]) -> None:
    flat = torch.randn(sum(lengths), 2, dtype=torch.float64, requires_grad=True)
    block = torch.randn(len(lengths), max(lengths), 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: pad(x, lengths), (flat,))
    assert torch.autograd.gradcheck(lambda x: unpad(x, lengths), (block,))


def test_what_was_padding_has_no_gradient() -> None:
    block = torch.ones(2, 3, 4, requires_grad=True)
    unpad(block, [1, 3]).sum().backward()
    assert block.grad is not None
    assert block.grad[..., 0].tolist() == [[1, 0, 0], [1, 1, 1]]


def test_runs_of_one_length_are_looked_at_where_they_are() -> None:
    flat = torch.arange(6.0)
    layout = layout_of([3, 3], CPU)
    assert layout == Layout(2, 3, None)
    assert layout.pad(flat).data_ptr() == layout.unpad(layout.pad(flat)).data_ptr() == flat.data_ptr()


def test_each_row_knows_its_cell() -> None:
    cells = layout_of([3, 1], CPU).cells
    assert cells is not None and cells.tolist() == [0, 1, 2, 3]
    cells = layout_of([1, 3, 2], CPU).cells
    assert cells is not None and cells.tolist() == [0, 3, 4, 5, 6, 7]


def test_no_run_at_all() -> None:
    assert pad(torch.empty(0, 4), []).shape == (0, 0, 4)
    assert unpad(torch.empty(0, 0, 4), []).shape == (0, 4)
