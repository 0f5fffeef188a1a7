"""The best stretches, against all pairs of a first and a last token."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.tasks.span_search import best_stretches


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 25), st.integers(1, 30), st.integers(1, 40), st.integers(0, 2**16))
def test_no_stretch_is_better(tokens: int, longest: int, count: int, seed: int) -> None:
    starts, ends = torch.randn(2, tokens, generator=torch.Generator().manual_seed(seed))
    every = [
        (float(starts[first] + ends[last]), first, last)
        for first in range(tokens)
        for last in range(first, min(first + longest, tokens))
    ]
    assert [tuple(found) for found in best_stretches(starts, ends, longest, count)] == sorted(every, reverse=True)[
        :count
    ]


def test_what_has_no_score_is_no_stretch() -> None:
    nothing = torch.full((4,), -torch.inf)
    assert best_stretches(nothing, torch.zeros(4), 3, 5) == []
    assert best_stretches(torch.full((4,), torch.nan), torch.zeros(4), 3, 5) == []
