"""Epochs of different lengths: where they begin, and that steps are dealt out whole."""

from __future__ import annotations

import pytest

from heedful.data.epochs import Epochs
from heedful.errors import HeedfulError


def dealt(epoch: int) -> list[list[int]]:
    """Epoch 0 has two batches, epoch 1 three, epoch 2 four, …"""
    return [[100 * epoch + 10 * batch + i for i in range(4)] for batch in range(epoch + 2)]


def test_steps_are_counted_through_epochs_of_different_lengths() -> None:
    epochs = Epochs(dealt)
    assert [epochs.steps_in(n) for n in (0.1, 0.5, 1, 2, 2.5, 3)] == [1, 1, 2, 5, 7, 9]
    first = [epochs.shares(number, 0, 1, 1)[0][0] for number in range(9)]
    assert first == [0, 10, 100, 110, 120, 200, 210, 220, 230]
    assert Epochs(dealt).shares(8, 0, 1, 1) == epochs.shares(8, 0, 1, 1)


def test_processes_and_micro_batches_share_a_batch() -> None:
    epochs = Epochs(dealt)
    parts = [part for rank in range(2) for part in epochs.shares(3, rank, 2, 2)]
    assert sorted(number for part in parts for number in part) == [110, 111, 112, 113]
    assert len(epochs.shares(0, 0, 1, 9)) == 4  # more micro-batches than there are examples
    uneven = Epochs(lambda epoch: [[1, 2, 3, 4, 5]])
    assert [uneven.shares(0, rank, 2, 4) for rank in range(2)] == [[[1, 5], [3]], [[2], [4]]]  # to each as many


def test_too_many_processes_are_refused() -> None:
    with pytest.raises(HeedfulError, match="step 1 is too small for 5 processes"):
        Epochs(dealt).check(5, 1)
    Epochs(dealt).check(4, 9)
