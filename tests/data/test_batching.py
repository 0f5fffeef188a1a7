"""Flat batches, their groups, and the cut by a budget of tokens."""

from __future__ import annotations

from itertools import accumulate, pairwise

import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.batching import cut_by_tokens, flat_batch, groups_of
from heedful.schema import Group

LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=60)


def test_a_flat_batch_lays_sequences_one_after_the_other() -> None:
    batch = flat_batch([[5, 6, 7], [8, 9], [1, 2]], [[0, 0, 1], [0, 1], [1, 1]])
    assert batch.ids.tolist() == [5, 6, 7, 8, 9, 1, 2]
    assert batch.segments.tolist() == [0, 0, 1, 0, 1, 1, 1]
    assert batch.positions.tolist() == [0, 1, 2, 0, 1, 0, 1]
    assert batch.lengths == (3, 2, 2)
    assert batch.groups == (Group(0, 1, 3), Group(3, 2, 2))
    assert {x.dtype for x in (batch.ids, batch.segments, batch.positions)} == {torch.int64}


def test_without_segments_everything_is_in_the_first() -> None:
    assert flat_batch([[5], [6, 7]]).segments.tolist() == [0, 0, 0]


@given(LENGTHS)
def test_groups_cover_every_sequence_once_and_are_as_few_as_can_be(lengths: list[int]) -> None:
    groups = groups_of(lengths)
    assert [group.length for group in groups for _ in range(group.count)] == lengths
    assert [group.start for group in groups] == [0, *accumulate(g.count * g.length for g in groups)][:-1]
    assert all(one.length != other.length for one, other in pairwise(groups))


@given(LENGTHS, st.integers(1, 100))
def test_a_cut_keeps_every_sequence_and_the_budget(lengths: list[int], budget: int) -> None:
    batches = cut_by_tokens(lengths, budget)
    order = [index for batch in batches for index in batch]
    assert sorted(order) == list(range(len(lengths)))
    assert [lengths[i] for i in order] == sorted(lengths, reverse=True)
    for batch in batches:
        assert len(batch) == 1 or sum(lengths[i] for i in batch) <= budget


def test_no_sequences_make_no_batches() -> None:
    assert cut_by_tokens([], 10) == []
