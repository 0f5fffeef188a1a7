"""Baselines that see which words there are but not their order: linear models over counts, in numpy.

A Chinese character counts as a word, as it does for BERT.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Bag = Counter[str]
Floats = npt.NDArray[np.floating[Any]]

_WORD = re.compile(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+|[^\w\s]")
_STEPS = 200
_DECAY = 1e-3


def words(text: str) -> list[str]:
    """The words and punctuation marks of `text` in small letters."""
    return _WORD.findall(text.lower())


def bag(text: str, side: str = "") -> Bag:
    """How often each word occurs, told apart from the words of other sides."""
    return Counter(side + word for word in words(text))


def pair_bag(first: str, second: str) -> Bag:
    """The counts of each side on its own, the words they share, and how many these are."""
    shared = bag(first, "both ") & bag(second, "both ")
    return bag(first, "1 ") + bag(second, "2 ") + shared + Counter({"shared words": shared.total()})


def classify(train: Sequence[Bag], labels: Sequence[int], dev: Sequence[Bag]) -> list[int]:
    """Logistic regression: the more likely of the labels 0 and 1 for each bag of `dev`."""
    return [int(score > 0) for score in _fit(train, labels, _sigmoid, dev)]


def regress(train: Sequence[Bag], targets: Sequence[float], dev: Sequence[Bag]) -> list[float]:
    """Ridge regression: the predicted number for each bag of `dev`."""
    return [float(score) for score in _fit(train, targets, lambda scores: scores, dev)]


def choose(train: Sequence[Sequence[Bag]], answers: Sequence[int], dev: Sequence[Sequence[Bag]]) -> list[int]:
    """Logistic regression over candidates: the place of the best one in each row of `dev`."""
    targets = [float(i == answer) for row, answer in zip(train, answers, strict=True) for i in range(len(row))]
    scores = iter(_fit([b for row in train for b in row], targets, _sigmoid, [b for row in dev for b in row]))
    return [int(np.argmax([next(scores) for _ in row])) for row in dev]


def accuracy(predicted: Sequence[object], right: Sequence[object]) -> float:
    """The share of predictions that are right."""
    return sum(p == r for p, r in zip(predicted, right, strict=True)) / len(right)


def correlation(predicted: Sequence[float], right: Sequence[float]) -> float:
    """Pearson's correlation, 0 where a side does not vary."""
    if np.std(predicted) < 1e-9 or np.std(right) < 1e-9:
        return 0.0
    return float(np.corrcoef(predicted, right)[0, 1])


def _fit(
    train: Sequence[Bag], targets: Sequence[float], link: Callable[[Floats], Floats], dev: Sequence[Bag]
) -> Floats:
    """Fit a linear model by accelerated gradient descent and return its scores (before the link) for `dev`."""
    columns = {word: i for i, word in enumerate(dict.fromkeys(word for counts in train for word in counts))}
    x, y = _matrix(train, columns), np.asarray(targets, np.float32)
    step = np.float32(1 / (float((x * x).sum(1).mean()) + _DECAY))  # one over a bound of the curvature
    weights: Floats = np.zeros(x.shape[1], np.float32)
    ahead = weights
    for i in range(_STEPS):
        gradient = x.T @ (link(x @ ahead) - y) / len(y) + _DECAY * ahead
        weights, before = ahead - step * gradient, weights
        ahead = weights + i / (i + 3) * (weights - before)
    scores: Floats = _matrix(dev, columns) @ weights
    return scores


def _matrix(bags: Sequence[Bag], columns: dict[str, int]) -> Floats:
    """Counts as rows with a constant last column; words that are not in `columns` are left out."""
    matrix = np.zeros((len(bags), len(columns) + 1), np.float32)
    matrix[:, -1] = 1
    for row, counts in zip(matrix, bags, strict=True):
        known = [(columns[word], count) for word, count in counts.items() if word in columns]
        row[[place for place, _ in known]] = [count for _, count in known]
    return matrix


def _sigmoid(scores: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-scores)), np.float32)
