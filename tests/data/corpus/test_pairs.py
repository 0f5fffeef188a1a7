"""Which runs make up a pair."""

import numpy as np
import pytest

from heedful.data.corpus.pairs import PairChooser
from heedful.errors import HeedfulError

ROOM = 61


def document_of(text, positions):
    return np.searchsorted(text.document_starts, positions, side="right") - 1


@pytest.fixture(scope="module")
def chosen(corpus):
    chooser = PairChooser(corpus.train, "nsp", ROOM, seed=1)
    return chooser, chooser.choose(np.arange(40_000))


def test_half_are_next_and_the_others_from_another_document(corpus, chosen):
    runs = chosen[1]
    other = runs.labels == 1
    assert abs(other.mean() - 0.5) < 0.01
    a, b = document_of(corpus.train, runs.a_starts), document_of(corpus.train, runs.b_starts)
    assert np.all(a[~other] == b[~other]) and np.all(runs.a_stops[~other] == runs.b_starts[~other])
    assert np.all(a[other] != b[other])
    for starts, stops, owner in ((runs.a_starts, runs.a_stops, a), (runs.b_starts, runs.b_stops, b)):
        assert np.all(stops > starts) and np.all(document_of(corpus.train, stops - 1) == owner)


def test_nothing_is_too_long_and_a_tenth_is_shorter(corpus, chosen):
    a, b = chosen[1].lengths
    assert (a + b).max() <= ROOM
    whole = PairChooser(corpus.train, "nsp", ROOM, seed=1, shorter=0).choose(np.arange(40_000))
    is_next = whole.labels == 0
    cut = (a + b)[is_next] < sum(whole.lengths)[is_next]
    assert 0.07 < cut.mean() < 0.1  # some random lengths are as long as the segment


def test_length_does_not_give_away_the_label(chosen):
    """A threshold on any length separates the classes by a few per cent at most."""
    runs = chosen[1]
    a, b = runs.lengths
    for length in (a, b, a + b):
        true, other = length[runs.labels == 0], length[runs.labels == 1]
        assert max(abs((true <= limit).mean() - (other <= limit).mean()) for limit in range(ROOM)) < 0.1


def test_runs_begin_and_end_with_sentences(corpus, chosen):
    runs = chosen[1]
    boundaries = corpus.train.sentence_starts
    for positions in (runs.a_starts, runs.a_stops, runs.b_starts, runs.b_stops):
        assert np.isin(positions, boundaries).mean() > 0.9


def test_an_epoch_uses_every_segment_once(corpus):
    chooser = PairChooser(corpus.train, "none", ROOM, seed=1, shorter=0)
    for epoch in (0, 3):
        runs = chooser.choose(np.arange(len(chooser)) + epoch * len(chooser))
        assert sorted(runs.a_starts.tolist()) == chooser.segments.starts.tolist()


def test_sentence_order(corpus):
    runs = PairChooser(corpus.train, "sop", ROOM, seed=1).choose(np.arange(20_000))
    swapped = runs.labels == 1
    assert abs(swapped.mean() - 0.5) < 0.015
    assert np.all(runs.a_stops[~swapped] == runs.b_starts[~swapped])
    assert np.all(runs.b_stops[swapped] <= runs.a_starts[swapped])


def test_single_sentences(corpus):
    runs = PairChooser(corpus.train, "nsp", 1000, seed=1, shorter=0, single_sentences=True).choose(np.arange(5000))
    number = {start: i for i, start in enumerate(corpus.train.sentence_starts.tolist())}
    for starts, stops in ((runs.a_starts, runs.a_stops), (runs.b_starts, runs.b_stops)):
        assert {number[b] - number[a] for a, b in zip(starts.tolist(), stops.tolist(), strict=True)} == {1}


def test_one_document_is_not_enough(corpus):
    class One:
        documents, sentences = 1, 2
        sentence_starts, document_starts = np.array([0, 3, 8]), np.array([0, 8])

    with pytest.raises(HeedfulError, match="two documents"):
        PairChooser(One(), "nsp", 10, seed=0)
    assert len(PairChooser(One(), "sop", 10, seed=0)) == 1
