"""Random numbers and shuffles as functions."""

import numpy as np
import pytest
from scipy import stats

from heedful.data.chance import below, hashed, shuffled, uniform


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 17, 64, 1000, 4097])
def test_a_shuffle_hits_every_place_once(size):
    assert sorted(shuffled(np.arange(size), size, 7, 1).tolist()) == list(range(size))


def test_a_shuffle_can_be_asked_in_any_order_and_for_many_keys():
    places = np.array([5, 99, 0, 42])
    keys = np.array([0, 1, 0, 2])
    together = shuffled(places, 100, 3, keys)
    apart = [int(shuffled(places[i : i + 1], 100, 3, keys[i])[0]) for i in range(4)]
    assert together.tolist() == apart


def test_shuffles_mix_and_differ():
    order = shuffled(np.arange(5000), 5000, 1, 0)
    assert abs(np.corrcoef(order, np.arange(5000))[0, 1]) < 0.05
    assert (order == shuffled(np.arange(5000), 5000, 1, 1)).mean() < 0.01
    neighbours = np.abs(np.diff(order)).mean()
    assert 1500 < neighbours < 1800  # a third of the size


def test_numbers_are_uniform_and_independent_of_neighbouring_keys():
    numbers = uniform(0, 5, np.arange(20_000))
    assert stats.kstest(numbers, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(numbers[1:], numbers[:-1])[0, 1]) < 0.03
    other = uniform(0, 6, np.arange(20_000))
    assert abs(np.corrcoef(numbers, other)[0, 1]) < 0.03
    counts = np.bincount(below(7, 1, np.arange(20_000)), minlength=7)
    assert stats.chisquare(counts).pvalue > 1e-3


def test_bits_are_balanced():
    bits = np.unpackbits(hashed(1, np.arange(4000)).view(np.uint8)).reshape(4000, 64).mean(axis=0)
    assert np.all(np.abs(bits - 0.5) < 0.05)
