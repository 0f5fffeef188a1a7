"""Pooling against loops."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.nn.pooling import POOLINGS, pool

BY_HAND = {
    "cls": lambda rows: rows[0],
    "last": lambda rows: rows[-1],
    "mean": lambda rows: sum(rows) / len(rows),
    "weighted-mean": lambda rows: sum(i * row for i, row in enumerate(rows, 1)) / sum(range(1, len(rows) + 1)),
    "max": lambda rows: torch.stack([max(column) for column in rows.T]),
    "mean-max": lambda rows: torch.cat([BY_HAND["mean"](rows), BY_HAND["max"](rows)]),
}


@settings(max_examples=30, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=5), how=st.sampled_from(POOLINGS), seed=st.integers(0, 99)
)
def test_equals_a_loop(lengths: list[int], how: str, seed: int) -> None:
    x = torch.randn(sum(lengths), 3, generator=torch.Generator().manual_seed(seed))
    by_hand = torch.stack([BY_HAND[how](rows) for rows in x.split(lengths)])
    torch.testing.assert_close(pool(x, lengths, how), by_hand)


@pytest.mark.parametrize("how", POOLINGS)
def test_nothing_pools_to_nothing(how: str) -> None:
    assert pool(torch.empty(0, 3), [], how).shape == (0, 6 if how == "mean-max" else 3)
