"""Bootstrap intervals, against cases whose resamples have a known distribution."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from numpy.typing import NDArray

from heedful.errors import HeedfulError
from heedful.tasks.bootstrap import Score, interval, paired
from heedful.tasks.label_metrics import pearson

ROUNDS = 4000


def mean_of(values: list[float]) -> Score:
    array = np.array(values, dtype=float)
    return lambda chosen: float(array[chosen].mean())


@pytest.mark.parametrize(("right", "n", "level"), [(120, 400, 0.95), (120, 400, 0.8), (45, 50, 0.95)])
def test_the_interval_of_a_share_is_the_binomial_one(right: int, n: int, level: float) -> None:
    """How many of n draws are right is binomial, with the share at hand as its probability."""
    low, high = interval(mean_of([1] * right + [0] * (n - right)), n, rounds=ROUNDS, level=level)
    expected = scipy.stats.binom.ppf([(1 - level) / 2, (1 + level) / 2], n, right / n) / n
    assert [low, high] == pytest.approx(expected.tolist(), abs=2 / n)


def test_the_interval_of_a_mean_is_the_normal_one() -> None:
    values = np.random.default_rng(1).normal(5, 2, size=500)
    low, high = interval(mean_of(values.tolist()), 500, rounds=ROUNDS)
    error = values.std() / math.sqrt(500)
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=0.15 * error)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=0.15 * error)


def test_what_is_always_the_same_has_an_interval_of_no_width() -> None:
    assert interval(mean_of([1] * 30), 30) == (1.0, 1.0)


def test_the_seed_alone_decides() -> None:
    score = mean_of([1, 0, 0, 1, 1, 0, 1])
    seen: list[list[int]] = []

    def watched(chosen: NDArray[np.int64]) -> float:
        seen.append(chosen.tolist())
        return score(chosen)

    spread = mean_of(np.random.default_rng(0).normal(size=7).tolist())
    assert interval(spread, 7, rounds=50, seed=3) == interval(spread, 7, rounds=50, seed=3)
    assert interval(spread, 7, rounds=50, seed=3) != interval(spread, 7, rounds=50, seed=4)
    interval(watched, 7, rounds=2, seed=3)
    interval(watched, 7, rounds=2, seed=3)
    assert seen[:2] == seen[2:] and seen[0] != seen[1]
    assert all(len(chosen) == 7 and set(chosen) <= set(range(7)) for chosen in seen)


def test_rounds_without_a_score_are_left_out() -> None:
    # Three points: a resample of one of them alone has no correlation.
    x, y = np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])
    low, high = interval(lambda chosen: pearson(x[chosen], y[chosen]), 3, rounds=200)
    assert (low, high) == pytest.approx((-1.0, 1.0))
    assert all(map(math.isnan, interval(lambda chosen: math.nan, 3)))
    assert all(map(math.isnan, paired(lambda chosen: math.nan, lambda chosen: 0.0, 3)))


def test_a_system_does_not_differ_from_itself() -> None:
    score = mean_of([1, 0, 1, 1, 0])
    assert paired(score, score, 5) == (0.0, 0.0, 0.0, 1.0)


@pytest.mark.parametrize("better", [1, 3, 6])
def test_p_where_one_system_is_right_on_a_few_examples_more(better: int) -> None:
    """A resample shows no difference if it holds none of these few: (1 - few/n)^n, and it is never negative."""
    n = 200
    a, b = mean_of([1] * 100 + [0] * 100), mean_of([1] * (100 - better) + [0] * (100 + better))
    found = paired(a, b, n, rounds=ROUNDS)
    assert found.difference == pytest.approx(better / n)
    assert found.p == pytest.approx(min(1.0, 2 * (1 - better / n) ** n), abs=0.05)
    expected = scipy.stats.binom.ppf([0.025, 0.975], n, better / n) / n
    assert [found.low, found.high] == pytest.approx(expected.tolist(), abs=1 / n)
    mirrored = paired(b, a, n, rounds=ROUNDS)
    assert mirrored == pytest.approx((-found.difference, -found.high, -found.low, found.p))


def test_a_clear_difference_has_the_smallest_p_there_is() -> None:
    found = paired(mean_of([1] * 90 + [0] * 10), mean_of([0] * 90 + [1] * 10), 100, rounds=999)
    assert found.low > 0 and found.p == 2 / 1000


def test_both_systems_see_the_same_resamples() -> None:
    values = np.random.default_rng(5).normal(size=40)
    found = paired(mean_of((values + 0.01).tolist()), mean_of(values.tolist()), 40)
    assert (found.difference, found.low, found.high) == pytest.approx((0.01, 0.01, 0.01))


def test_what_says_nothing_is_refused() -> None:
    with pytest.raises(HeedfulError, match="says nothing"):
        interval(mean_of([1]), 0)
    with pytest.raises(HeedfulError, match="says nothing"):
        paired(mean_of([1]), mean_of([1]), 1, rounds=0)
    with pytest.raises(HeedfulError, match="level"):
        interval(mean_of([1]), 1, level=95)
