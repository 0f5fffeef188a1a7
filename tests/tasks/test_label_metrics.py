"""Scores of labels and numbers, against scipy, formulas of another shape, and numbers worked by hand."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st

from heedful.errors import HeedfulError
from heedful.tasks.label_metrics import (
    LabelScores,
    accuracy,
    confusion,
    f1,
    macro_f1,
    matthews,
    pearson,
    per_label,
    spearman,
)

LABELS = ["no", "yes", "maybe"]
PAIRS = st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from(LABELS)), min_size=1, max_size=40)
# Few values, so that there are ties; and rounded ones, so that no two differ by a hair.
NUMBERS = st.one_of(st.integers(-3, 3), st.floats(-1e3, 1e3).map(lambda value: round(value, 3)))
NUMBER_PAIRS = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=30)


def split(pairs: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    return [a for a, _ in pairs], [b for _, b in pairs]


def counted_f1(pairs: list[tuple[str, str]], label: str) -> float:
    """The harmonic mean of precision and recall, each counted by itself."""
    guessed = [truth for truth, guess in pairs if guess == label]
    true = [guess for truth, guess in pairs if truth == label]
    precision = guessed.count(label) / len(guessed) if guessed else 0.0
    recall = true.count(label) / len(true) if true else 0.0
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def one_hot_correlation(pairs: list[tuple[str, str]]) -> float:
    """Matthews' correlation by its definition: the covariance of the one-hot matrices over their spreads."""
    x, y = (np.array([[value == label for label in LABELS] for value in side], dtype=float) for side in split(pairs))
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    spread = (x * x).sum() * (y * y).sum()
    return float((x * y).sum() / math.sqrt(spread)) if spread > 1e-9 else 0.0


@given(PAIRS)
def test_label_scores_agree_with_plain_counting(pairs: list[tuple[str, str]]) -> None:
    truth, guess = split(pairs)
    assert accuracy(truth, guess) == pytest.approx(sum(t == g for t, g in pairs) / len(pairs))
    for label in LABELS:
        assert f1(truth, guess, label) == pytest.approx(counted_f1(pairs, label))
    assert macro_f1(truth, guess, LABELS) == pytest.approx(sum(counted_f1(pairs, label) for label in LABELS) / 3)
    assert matthews(truth, guess) == pytest.approx(one_hot_correlation(pairs), abs=1e-12)


@given(PAIRS)
def test_confusion_counts_every_pair_and_per_label_follows_from_it(pairs: list[tuple[str, str]]) -> None:
    truth, guess = split(pairs)
    counts = confusion(truth, guess, LABELS)
    assert counts.tolist() == [[pairs.count((t, g)) for g in LABELS] for t in LABELS]
    for place, (label, precision, recall, score, support) in enumerate(per_label(truth, guess, LABELS)):
        assert label == LABELS[place] and support == truth.count(label)
        assert precision * guess.count(label) == pytest.approx(counts[place, place])
        assert recall * support == pytest.approx(counts[place, place])
        assert score == f1(truth, guess, label)


@given(PAIRS)
def test_arrays_and_numbers_score_as_lists_of_strings_do(pairs: list[tuple[str, str]]) -> None:
    truth, guess = split(pairs)
    numbered = [np.array([LABELS.index(value) for value in side]) for side in (truth, guess)]
    for measure in (accuracy, matthews):
        assert measure(np.array(truth), np.array(guess)) == measure(truth, guess) == measure(*numbered)
    assert f1(*numbered, 1) == f1(np.array(truth), np.array(guess), "yes") == f1(truth, guess, "yes")
    assert np.array_equal(confusion(*numbered, [0, 1, 2]), confusion(truth, guess, LABELS))


def test_the_binary_matthews_is_the_phi_coefficient() -> None:
    tp, fp, fn, tn = 90, 4, 5, 1
    truth = [1] * tp + [0] * fp + [1] * fn + [0] * tn
    guess = [1] * tp + [1] * fp + [0] * fn + [0] * tn
    phi = (tp * tn - fp * fn) / math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    assert matthews(truth, guess) == pytest.approx(phi) == pytest.approx(0.13524, abs=5e-6)


def test_degenerate_labels_score_zero() -> None:
    assert matthews(["a", "a"], ["a", "b"]) == 0.0  # nothing to correlate with
    assert matthews(["a", "b"], ["a", "a"]) == 0.0
    assert matthews(["a", "a"], ["a", "a"]) == 0.0
    assert f1(["a", "a"], ["a", "a"], "b") == 0.0
    assert per_label(["a"], ["b"], ["a", "b", "c"]) == [("a", 0, 0, 0, 1), ("b", 0, 0, 0, 0), ("c", 0, 0, 0, 0)]
    assert LabelScores.of("x", 0, 0, 0) == ("x", 0.0, 0.0, 0.0, 0)


def test_opposite_labels_correlate_by_minus_one() -> None:
    assert matthews(["a", "b", "a"], ["b", "a", "b"]) == -1.0
    assert matthews([*LABELS] * 50_000, [*LABELS] * 50_000) == 1.0  # products beyond 64 bits


@given(NUMBER_PAIRS)
def test_correlations_are_scipys(pairs: list[tuple[float, float]]) -> None:
    x, y = zip(*pairs, strict=True)
    assume(len(set(x)) > 1 and len(set(y)) > 1)
    assert pearson(x, y) == pytest.approx(scipy.stats.pearsonr(x, y).statistic, abs=1e-8)
    assert spearman(x, y) == pytest.approx(scipy.stats.spearmanr(x, y).statistic, abs=1e-8)


def test_tied_ranks_are_averaged() -> None:
    # Ranks 1.5 1.5 3 4 and 1 2 3.5 3.5: covariance 4, variances 4.5 and 4.5.
    assert spearman([7, 7, 8, 9], [1, 2, 5, 5]) == pytest.approx(4 / 4.5)


@pytest.mark.parametrize("measure", [pearson, spearman])
def test_what_does_not_vary_has_no_correlation(measure: Callable[[list[float], list[float]], float]) -> None:
    constant = [0.1, 0.1, 0.1]  # whose computed mean is not 0.1
    assert math.isnan(measure(constant, [1, 2, 3])) and math.isnan(measure([1, 2, 3], constant))
    assert math.isnan(measure([1], [2]))
    assert math.isnan(measure([1, 2, math.nan], [1, 2, 3])) and math.isnan(measure([1, 2, 3], [1, math.inf, 3]))


@pytest.mark.parametrize("measure", [accuracy, matthews, pearson, spearman])
def test_nothing_and_unequal_lengths_are_refused(measure: Callable[[list[int], list[int]], float]) -> None:
    with pytest.raises(HeedfulError, match="nothing to score"):
        measure([], [])
    with pytest.raises(HeedfulError, match="1 guesses cannot be scored against 2 true ones"):
        measure([1, 2], [1])


def test_a_label_outside_the_known_ones_is_named() -> None:
    with pytest.raises(HeedfulError, match=r"'perhaps' is none of the 3 known ones(?s:.*)no, yes, maybe"):
        confusion(["yes"], ["perhaps"], LABELS)
