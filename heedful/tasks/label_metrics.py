"""How well guessed labels and numbers agree with the true ones, as GLUE counts it; in fractions, not per cent."""

from __future__ import annotations

import math
from collections.abc import Sequence, Sized
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.errors import HeedfulError

# Labels, as strings or numbers, in the order of the examples; arrays are quickest where scores are taken many times.
Labels = Sequence[Any] | NDArray[Any]
Numbers = Sequence[float] | NDArray[Any]


class LabelScores(NamedTuple):
    """How well one label, or one type of entity, is found."""

    label: str
    precision: float
    recall: float
    f1: float
    support: int  # how often it is true

    @classmethod
    def of(cls, label: str, correct: int, guessed: int, true: int) -> LabelScores:
        """From counts: P = correct / guessed, R = correct / true, F1 = 2PR / (P + R); 0.0 where the divisor is 0."""
        precision = correct / guessed if guessed else 0.0
        recall = correct / true if true else 0.0
        # The same as 2PR / (P + R), with one rounding.
        f1 = 2 * correct / (guessed + true) if guessed + true else 0.0
        return cls(label, precision, recall, f1, int(true))


def require_pairs(truth: Sized, guess: Sized) -> None:
    """Refuse to score nothing, or lists of which one is longer."""
    if len(truth) != len(guess):
        raise HeedfulError(
            f"{len(guess):,} guesses cannot be scored against {len(truth):,} true ones",
            remedy="score the predictions of the very examples that were predicted",
        )
    if not len(truth):
        raise HeedfulError("there is nothing to score", remedy="give at least one labelled example")


def accuracy(truth: Labels, guess: Labels) -> float:
    """The share of guesses that are right."""
    require_pairs(truth, guess)
    return float(np.mean(np.asarray(truth) == np.asarray(guess)))


def f1(truth: Labels, guess: Labels, positive: Any) -> float:
    """F1 of the label `positive`: 2·TP / (2·TP + FP + FN); 0.0 where it is neither true nor guessed."""
    require_pairs(truth, guess)
    true, guessed = np.asarray(truth) == positive, np.asarray(guess) == positive
    return LabelScores.of(str(positive), int((true & guessed).sum()), int(guessed.sum()), int(true.sum())).f1


def macro_f1(truth: Labels, guess: Labels, labels: Sequence[Any]) -> float:
    """The mean of the F1 of all `labels`, in which one that never occurs counts as 0.0."""
    return float(np.mean([scores.f1 for scores in per_label(truth, guess, labels)]))


def matthews(truth: Labels, guess: Labels) -> float:
    """Matthews' correlation, in Gorodkin's form for any number of labels; 0.0 where truth or guess is constant.

    With s examples of which c are right, t_k times label k true and p_k times guessed:
    (c·s - Σ t_k·p_k) / sqrt((s² - Σ p_k²)·(s² - Σ t_k²)).
    """
    counts = confusion(truth, guess, list(dict.fromkeys([*_listed(truth), *_listed(guess)])))
    # Python's integers: the products below leave 64 bits.
    true, guessed = counts.sum(axis=1).tolist(), counts.sum(axis=0).tolist()
    total, right = sum(true), int(counts.trace())
    agreement = right * total - sum(t * p for t, p in zip(true, guessed, strict=True))
    spread = (total**2 - sum(p * p for p in guessed)) * (total**2 - sum(t * t for t in true))
    return agreement / math.sqrt(spread) if spread else 0.0


def pearson(x: Numbers, y: Numbers) -> float:
    """Pearson's correlation cov(x, y) / (σ_x·σ_y); nan where x or y is constant or not finite."""
    require_pairs(x, y)
    pair = np.asarray([x, y], dtype=np.float64)
    # Asked of the values themselves: the computed variance of equal numbers is not always 0.
    if not np.isfinite(pair).all() or (pair == pair[:, :1]).all(axis=1).any():
        return math.nan
    return float(np.corrcoef(*pair)[0, 1])


def spearman(x: Numbers, y: Numbers) -> float:
    """Spearman's correlation: Pearson's of the ranks, ties having the mean of theirs; nan as there."""
    require_pairs(x, y)
    if not np.isfinite(np.asarray([x, y], dtype=np.float64)).all():
        return math.nan
    return pearson(_ranks(x), _ranks(y))


def confusion(truth: Labels, guess: Labels, labels: Sequence[Any]) -> NDArray[np.int64]:
    """Counts (K, K): how often label i was true and label j guessed, in row i and column j."""
    require_pairs(truth, guess)
    rows, columns = _numbered(truth, labels), _numbered(guess, labels)
    cells = np.bincount(rows * len(labels) + columns, minlength=len(labels) ** 2)
    return cells.reshape(len(labels), len(labels)).astype(np.int64)


def per_label(truth: Labels, guess: Labels, labels: Sequence[Any]) -> list[LabelScores]:
    """Precision, recall, F1 and support of each label, in the order of `labels`."""
    counts = confusion(truth, guess, labels)
    correct, guessed, true = counts.diagonal().tolist(), counts.sum(axis=0).tolist(), counts.sum(axis=1).tolist()
    return [LabelScores.of(str(label), *row) for label, *row in zip(labels, correct, guessed, true, strict=True)]


def _listed(values: Labels) -> list[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def _numbered(values: Labels, labels: Sequence[Any]) -> NDArray[np.int64]:
    """The number that each value has among the labels."""
    number = {label: place for place, label in enumerate(labels)}
    try:
        return np.array([number[value] for value in _listed(values)], dtype=np.int64)
    except KeyError as error:
        raise HeedfulError(
            f"the label {error.args[0]!r} is none of the {len(labels)} known ones",
            remedy=f"known are: {', '.join(map(str, labels))}",
        ) from None


def _ranks(values: Numbers) -> NDArray[np.float64]:
    """Ranks from 1 upwards; n equal values share the mean of the n ranks they take up."""
    _, place, counts = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return ranks
