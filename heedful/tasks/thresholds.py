"""From which probability on something is said: the threshold with the best score on examples whose truth is known.

With k of n examples said, t of them truly so and p truths in all, the counts at a threshold are t right, k - t wrong
and p - t missed:

    accuracy    (t + n - k - (p - t)) / n
    F1          2t / (k + p)
    Matthews    (t·n - k·p) / sqrt(k (n - k) p (n - p))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.float64]


def _accuracy(right: Counts, said: Counts, true: float, total: float) -> Counts:
    return (total + 2 * right - said - true) / total


def _f1(right: Counts, said: Counts, true: float, total: float) -> Counts:
    return 2 * right / np.maximum(said + true, 1)


def _matthews(right: Counts, said: Counts, true: float, total: float) -> Counts:
    spread = said * (total - said) * true * (total - true)
    return (right * total - said * true) / np.sqrt(np.where(spread > 0, spread, np.inf))


SCORES: Mapping[str, Callable[[Counts, Counts, float, float], Counts]] = {
    "accuracy": _accuracy,
    "f1": _f1,
    "matthews": _matthews,
}


def best_threshold(shares: NDArray[np.float64], truth: NDArray[np.bool_], score: str = "f1") -> float:
    """The threshold from which on decisions have the best score, halfway to the next lower share.

    0.5 if nothing is true, for then nothing tells them apart.
    """
    if not truth.any():
        return 0.5
    order = np.argsort(-shares, kind="stable")
    ordered, right = shares[order], np.cumsum(truth[order]).astype(np.float64)
    said = np.arange(1, len(ordered) + 1, dtype=np.float64)
    scores = SCORES[score](right, said, float(truth.sum()), float(len(truth)))
    scores[:-1][ordered[:-1] == ordered[1:]] = -np.inf  # no threshold parts equal shares
    last = int(np.argmax(scores))
    below = ordered[last + 1] if last + 1 < len(ordered) else 0.0
    return float((ordered[last] + below) / 2)
