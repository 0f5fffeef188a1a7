"""Permuted examples: the text is covered, orders are random and repeatable, and one token in K is predicted."""

from __future__ import annotations

import numpy as np
import pytest

from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.permuted import PermutationRecipe, PermutedBatches, PermutedExamples, stretches
from heedful.data.corpus.phases import Place
from heedful.errors import HeedfulError

RECIPE = PermutationRecipe(max_length=34, seed=3)


@pytest.fixture
def maker(corpus: Corpus) -> PermutedExamples:
    return PermutedExamples(corpus, RECIPE)


def test_stretches_cover_every_document_and_cross_none(corpus: Corpus) -> None:
    starts, stops = stretches(corpus.train, 32)
    documents = corpus.train.document_starts
    covered = np.zeros(corpus.train.tokens, bool)
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        covered[start:stop] = True
        own = int(np.searchsorted(documents, start, side="right")) - 1
        assert documents[own] <= start < stop <= documents[own + 1]
        assert stop - start == min(32, documents[own + 1] - documents[own])
    assert covered.all()


def test_the_last_of_a_random_order_are_predicted(maker: PermutedExamples) -> None:
    examples, turns = maker.take(np.arange(50))
    assert (np.diff(examples.lengths) <= 0).all() and examples.lengths[0] == 34
    ends = np.cumsum(examples.lengths)
    assert (examples.ids[ends - 1] == maker.ending[1]).all() and (examples.segments[ends - 1] == 2).all()
    places = []
    for start, end in zip((ends - examples.lengths).tolist(), ends.tolist(), strict=True):
        own = turns[start:end]
        predicted = sorted(own[own >= 0].tolist())
        assert predicted == list(range((end - start - 2) // 6)) and (own[-2:] == -1).all()
        places += np.flatnonzero(own >= 0).tolist()
    assert len(set(places)) > 25  # anywhere
    assert np.array_equal(examples.labels, examples.ids[examples.masked])


def test_an_example_is_a_function_of_its_number(maker: PermutedExamples) -> None:
    whole, turns = maker.take(np.arange(8))
    for row, number in enumerate(whole.numbers.tolist()):
        alone, own = maker.take(np.array([number]))
        start = int(whole.lengths[:row].sum())
        assert np.array_equal(alone.ids, whole.ids[start : start + len(alone.ids)])
        assert np.array_equal(own, turns[start : start + len(own)])
    _, other = maker.take(np.arange(8) + len(maker))
    assert len(other) and not np.array_equal(other[: len(turns)], turns[: len(other)])
    batches = PermutedBatches(maker)
    taken = batches.take(Place(step=2, first=20, batch_size=10), np.array([0, 3]))
    assert taken.counts == {"permutation": len(taken.targets)} and taken.tokens == len(taken.batch.ids)
    assert set(maker.take(np.array([20, 23]))[0].ids.tolist()) == set(taken.batch.ids.tolist())


def test_recipes_that_make_no_sense(corpus: Corpus) -> None:
    with pytest.raises(HeedfulError, match="leaves nothing"):
        PermutationRecipe(predict_one_in=1)
    with pytest.raises(HeedfulError, match="too short"):
        PermutationRecipe(max_length=4)
