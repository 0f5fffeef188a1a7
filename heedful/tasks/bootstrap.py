"""How far a score may be trusted: bootstrap intervals, and the paired bootstrap of two systems on the same examples."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.errors import HeedfulError

# The score of a choice of examples, given by their numbers, of which some come several times.
Score = Callable[[NDArray[np.int64]], float]


class Comparison(NamedTuple):
    """By how much one system is better than another, with an interval and a two-sided p-value."""

    difference: float
    low: float
    high: float
    p: float


def interval(score: Score, n: int, rounds: int = 1000, seed: int = 0, level: float = 0.95) -> tuple[float, float]:
    """The percentile interval of a score over `n` examples: between its (1 ± level)/2 quantiles over resamples.

    Each round draws n examples with replacement. Rounds whose score is nan (as a correlation with something
    constant) are left out; if all are, the interval is nan.
    """
    return _quantiles(_resampled(score, n, rounds, seed), level)


def paired(
    score_a: Score, score_b: Score, n: int, rounds: int = 1000, seed: int = 0, level: float = 0.95
) -> Comparison:
    """The difference a - b on all `n` examples, its percentile interval, and p; both systems see the same resamples.

    p = 2·(1 + m) / (1 + rounds), at most 1, where m counts the rounds with a difference of 0 or of the rarer sign:
    a difference as far from 0 as the resamples spread around it gets a small p, and never 0.
    """

    def difference(chosen: NDArray[np.int64]) -> float:
        return score_a(chosen) - score_b(chosen)

    differences = _resampled(difference, n, rounds, seed)
    low, high = _quantiles(differences, level)
    rarer = min(int((differences <= 0).sum()), int((differences >= 0).sum()))
    p = min(1.0, 2 * (1 + rarer) / (1 + len(differences))) if len(differences) else math.nan
    return Comparison(difference(np.arange(n)), low, high, p)


def _resampled(score: Score, n: int, rounds: int, seed: int) -> NDArray[np.float64]:
    """The scores of the resamples, without those that are nan."""
    if n < 1 or rounds < 1:
        raise HeedfulError(
            f"a bootstrap of {n:,} examples in {rounds:,} rounds says nothing", remedy="give at least one of each"
        )
    rng = np.random.default_rng(seed)
    found = np.array([score(rng.integers(n, size=n)) for _ in range(rounds)], dtype=np.float64)
    return found[~np.isnan(found)]


def _quantiles(found: NDArray[np.float64], level: float) -> tuple[float, float]:
    if not 0 < level < 1:
        raise HeedfulError(f"an interval cannot have the level {level}", remedy="use one between 0 and 1, such as 0.95")
    if not len(found):
        return math.nan, math.nan
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
