"""The stream of a corpus, windows of it, and lanes through it."""

import numpy as np
import pytest

from heedful.data.corpus.causal import Lanes, Windows, held_out_windows
from heedful.data.corpus.phases import Phase, Place, PretrainingSource
from heedful.data.corpus.stream import TokenStream
from heedful.errors import HeedfulError
from heedful.text.ends import Ends


@pytest.fixture(scope="module")
def stream(corpus):
    return TokenStream.of(corpus)


@pytest.fixture(scope="module")
def whole(corpus):
    """The stream written out."""
    text, tokenizer = corpus.train, corpus.tokenizer
    documents = [
        text.read("tokens", int(start), int(stop)).tolist()
        for start, stop in zip(text.document_starts[:-1], text.document_starts[1:], strict=True)
    ]
    return [token for document in documents for token in (tokenizer.cls_id, *document, tokenizer.sep_id)]


def test_any_stretch_can_be_read(stream, whole, corpus):
    assert len(stream) == len(whole) == corpus.train.tokens + 2 * corpus.train.documents
    rng = np.random.default_rng(0)
    for start in [0, len(whole) - 40, *rng.integers(0, len(whole) - 200, 200)]:
        stop = start + int(rng.integers(1, 200))
        assert stream.read(int(start), min(stop, len(whole))).tolist() == whole[start:stop]


def test_without_a_frame_only_the_end_stands_between_documents(corpus, whole, tokenizer):
    bare = TokenStream(corpus.train, Ends(tokenizer.sep_id, tokenizer.sep_id, framed=False))
    assert bare.read(0, len(bare)).tolist() == [token for token in whole if token != tokenizer.cls_id]


def test_windows_go_through_the_text_and_labels_are_what_comes_next(stream, whole):
    windows = Windows(stream, 32, seed=4)
    seen = set()
    for first in range(0, windows.count, 8):
        rows = np.arange(min(8, windows.count - first))
        batch = windows.take(Place(0, first, 8), rows)
        assert batch.batch.positions.tolist() == [*range(32)] * len(rows) and batch.counts == {"lm": 32 * len(rows)}
        for ids, labels in zip(batch.batch.ids.view(-1, 32).tolist(), batch.labels.view(-1, 32).tolist(), strict=True):
            assert ids[1:] == labels[:-1]
            seen.add(tuple(ids))
    assert len(seen) == windows.count  # each once
    assert sum(map(len, seen)) > 0.9 * len(whole)
    again = windows.take(Place(0, windows.count, 8), np.arange(1)).batch.ids
    assert tuple(again.tolist()) not in seen  # cut elsewhere


@pytest.mark.parametrize(("world", "accumulate"), [(1, 1), (2, 3)])
def test_lanes_go_on_from_step_to_step_however_they_are_dealt(stream, whole, world, accumulate):
    source = PretrainingSource([Phase(Lanes(stream, 16), 100, 6)])
    reach = (len(whole) - 1) // 6
    read = {lane: [] for lane in range(6)}
    for step in range(10):
        for rank in range(world):
            for batch in source.step(step, rank, world, accumulate):
                assert batch.fresh.tolist() == [step == 0] * len(batch.lanes)
                for lane, ids in zip(batch.lanes.tolist(), batch.batch.ids.view(-1, 16).tolist(), strict=True):
                    read[lane] += ids
    for lane, ids in read.items():
        assert ids == whole[lane * reach : lane * reach + 160]
    assert bool(source.step(reach // 16)[0].fresh.all())  # the lane is at its end


def test_a_new_phase_begins_its_lanes_anew(stream):
    source = PretrainingSource([Phase(Lanes(stream, 16), 3, 8), Phase(Lanes(stream, 32), 3, 4)])
    assert [bool(source.step(n)[0].fresh.all()) for n in range(5)] == [True, False, False, True, False]


def test_held_out_text_is_read_once_in_its_order(corpus):
    stream = TokenStream.of(corpus, "held_out")
    found = [one.batch.ids for one in held_out_windows(stream, 16, 4, 10_000, lanes=False)]
    ids = np.concatenate([one.numpy() for one in found])
    assert ids.tolist() == stream.read(0, len(ids)).tolist() and len(stream) - len(ids) <= 16
    lanes = list(held_out_windows(stream, 16, 4, 8, lanes=True))
    assert [one.fresh.tolist() for one in lanes] == [[True] * 4, [False] * 4]


def test_too_little_text_is_told(stream):
    with pytest.raises(HeedfulError, match=r"too few for examples(.|\n)*phases"):
        Windows(stream, len(stream), seed=0)
    with pytest.raises(HeedfulError, match=r"lanes of 16 tokens(.|\n)*batch_size"):
        Lanes(stream, 16).take(Place(0, 0, len(stream)), np.arange(2))
