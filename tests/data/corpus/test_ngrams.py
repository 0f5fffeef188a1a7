"""Counts against the obvious loop, and probabilities that add up."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from heedful.data.corpus.examples import ExampleMaker, Recipe
from heedful.data.corpus.ngrams import NgramBaselines


@pytest.fixture(scope="module")
def baselines(corpus):
    return NgramBaselines(corpus)


def test_probabilities_add_up(baselines):
    assert math.isclose(baselines.unigram.sum(), 1)
    everything = np.arange(baselines.size)
    for left in (2, 3, 5, 40, 77, 120):
        total = baselines.bigram(np.full(baselines.size, left), everything).sum()
        assert math.isclose(total, 1, abs_tol=1e-9)


def test_same_as_by_hand(corpus, baselines):
    """Interpolated Kneser-Ney with dictionaries."""
    text, hideable = corpus.train, baselines.hideable
    pairs, singles = Counter(), Counter()
    for start, end in zip(text.document_starts[:-1].tolist(), text.document_starts[1:].tolist(), strict=True):
        tokens = text.read("tokens", start, end).tolist()
        singles.update(tokens)
        pairs.update((a, b) for a, b in pairwise(tokens) if hideable[b])
    once, twice = (sum(count == n for count in pairs.values()) for n in (1, 2))
    discount = once / (once + 2 * twice)
    contexts = Counter(b for _, b in pairs)
    kinds = int(hideable.sum())
    for left, right in [*list(pairs)[:50], (8, 9), (2, 50)]:
        lower = (contexts[right] + 1) / (sum(contexts.values()) + kinds) if hideable[right] else 0
        total = sum(count for (a, _), count in pairs.items() if a == left)
        followers = sum(a == left for a, _ in pairs)
        expected = lower
        if total:
            expected = max(pairs[left, right] - discount, 0) / total + discount * followers / total * lower
        assert math.isclose(baselines.bigram(np.array([left]), np.array([right]))[0], expected, rel_tol=1e-9)


def test_best_guess_is_the_most_probable(baselines):
    everything = np.arange(baselines.size)
    for left in range(0, baselines.size, 7):
        probabilities = baselines.bigram(np.full(baselines.size, left), everything)
        assert probabilities[baselines.best[left]] == pytest.approx(probabilities.max())


def test_scores(corpus, baselines):
    examples = ExampleMaker(corpus, Recipe(max_length=64), "held_out").take(np.arange(100))
    scores = baselines.score([examples])
    assert scores.tokens == len(examples.labels)
    assert scores.bigram_loss < scores.unigram_loss < math.log(baselines.size)
    assert scores.bigram_accuracy > scores.unigram_accuracy > 0
    expected = -np.mean([math.log(baselines.unigram[label]) for label in examples.labels])
    assert scores.unigram_loss == pytest.approx(expected)


def test_counting_can_be_capped(corpus):
    few = NgramBaselines(corpus, most_tokens=500)
    assert len(few.codes) < 500
