"""Segments against the obvious loop."""

import random

import pytest

from heedful.data.corpus.segments import cut_segments


def by_hand(text, budget):
    """Greedy filling, one sentence at a time."""
    boundaries = text.sentence_starts.tolist()
    found = []
    for start, end in zip(text.document_starts[:-1].tolist(), text.document_starts[1:].tolist(), strict=True):
        inner = [b for b in boundaries if start < b <= end]
        position = start
        while position < end:
            fitting = [b for b in inner if position < b <= position + budget]
            stop = fitting[-1] if fitting else min(position + budget, end)
            found.append((position, stop))
            position = stop
        last_start, last_stop = found[-1]
        before = [b for b in [start, *inner] if b < last_start]
        lonely = not any(last_start < b < last_stop for b in inner)
        if lonely and before and last_stop - before[-1] <= budget:
            found[-1] = (before[-1], last_stop)
    return found


@pytest.mark.parametrize("budget", [5, 29, 61, 125, 100_000])
def test_same_as_by_hand(corpus, budget):
    segments = cut_segments(corpus.held_out, budget)
    assert list(zip(segments.starts.tolist(), segments.stops.tolist(), strict=True)) == by_hand(corpus.held_out, budget)


def test_documents_know_their_segments(corpus):
    text = corpus.train
    segments = cut_segments(text, 61)
    for document in random.Random(0).sample(range(text.documents), 30):
        mine = range(segments.of_document[document], segments.of_document[document + 1])
        assert all(segments.documents[i] == document for i in mine)
        assert segments.starts[mine[0]] == text.document_starts[document]
        assert segments.stops[mine[-1]] == text.document_starts[document + 1]


def test_pairs_of_sentences(corpus):
    text = corpus.held_out
    segments = cut_segments(text, 1000, sentences=2)
    number = {start: i for i, start in enumerate(text.sentence_starts.tolist())}
    sizes = {number[b] - number[a] for a, b in zip(segments.starts.tolist(), segments.stops.tolist(), strict=True)}
    assert sizes == {2}  # an odd last sentence takes the one before it along
