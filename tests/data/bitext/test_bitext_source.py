"""The pairs of each step: all of them once an epoch, alike in length, and the same however they are dealt out."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from heedful.data.bitext.pairs import EncodedPairs, TokenRows
from heedful.data.bitext.source import BitextMicroBatch, BitextSource, micro_batches_of


def pairs(count: int, seed: int = 0) -> EncodedPairs:
    """Pairs of random lengths; the second token of a source is 100 + the number of the pair."""
    lengths = np.random.default_rng(seed).integers(1, 30, size=(count, 2)).tolist()
    source = TokenRows.of([[2, 100 + number, *[7] * m, 3] for number, (m, _) in enumerate(lengths)])
    target = TokenRows.of([[2, *[8] * n, 3] for _, n in lengths])
    return EncodedPairs(source, target)


def numbers(micro_batches: list[BitextMicroBatch]) -> list[int]:
    return [int(i) - 100 for micro_batch in micro_batches for i in micro_batch.bitext.source.ids if i >= 100]


def test_an_epoch_has_every_pair_once_in_an_order_of_its_own() -> None:
    source = BitextSource(pairs(500), batch_size=400, seed=1)
    ends = [0, source.steps_in(1), source.steps_in(2)]
    epochs = [[numbers(source.step(n)) for n in range(a, b)] for a, b in pairwise(ends)]
    for epoch in epochs:
        assert sorted(number for batch in epoch for number in batch) == list(range(500))
    assert epochs[0] != epochs[1]


def test_a_step_is_a_function_of_seed_and_number() -> None:
    data = pairs(300)
    source, other = (BitextSource(data, 300, seed=4) for _ in range(2))
    forwards = [numbers(source.step(n)) for n in range(30)]
    assert [numbers(other.step(n)) for n in reversed(range(30))][::-1] == forwards
    assert [numbers(BitextSource(data, 300, seed=5).step(n)) for n in range(30)] != forwards


def test_other_pairs_have_another_fingerprint() -> None:
    one, same, other = (BitextSource(pairs(20, seed), 300, seed=1).fingerprint for seed in (0, 0, 1))
    assert one == same != other


@pytest.mark.parametrize(("world", "accumulate"), [(1, 3), (2, 1), (2, 2)])
def test_processes_and_micro_batches_share_the_same_batch(world: int, accumulate: int) -> None:
    source = BitextSource(pairs(200), 500, seed=0)
    for step in range(source.steps_in(1)):
        dealt = [n for rank in range(world) for n in numbers(source.step(step, rank, world, accumulate))]
        assert Counter(dealt) == Counter(numbers(source.step(step)))


def test_batches_stay_within_their_size_and_are_alike_in_length() -> None:
    data = pairs(2000)
    source = BitextSource(data, batch_size=1000, seed=0)
    micro_batches = [source.step(n)[0] for n in range(source.steps_in(1))]
    assert sum(micro_batch.tokens for micro_batch in micro_batches) == data.tokens.sum()
    assert (
        sorted(micro_batch.tokens for micro_batch in micro_batches)[-2] <= 1000
    )  # a small last batch may have joined another
    spread = np.mean([np.ptp(micro_batch.bitext.source.lengths) for micro_batch in micro_batches])
    assert spread < 3  # of lengths from 3 to 32
    firsts = [micro_batch.bitext.source.lengths[0] for micro_batch in micro_batches]
    assert firsts not in (sorted(firsts), sorted(firsts, reverse=True))


def test_a_micro_batch_counts_what_is_said_seen_and_padded() -> None:
    source = TokenRows.of([[2, 5, 5, 3], [2, 3]])
    target = TokenRows.of([[2, 3], [2, 6, 6, 3]])
    (micro_batch,) = micro_batches_of(EncodedPairs(source, target), 100)
    assert micro_batch.counts == {"translation": 4}
    assert micro_batch.tokens == 4 + 2 + 1 + 3
    assert micro_batch.padding == 2 + 2


def test_all_pairs_once_for_an_evaluation() -> None:
    data = pairs(90)
    micro_batches = list(micro_batches_of(data, 200))
    assert sorted(numbers(micro_batches)) == list(range(90))
    assert max(micro_batch.tokens for micro_batch in micro_batches) <= 200
