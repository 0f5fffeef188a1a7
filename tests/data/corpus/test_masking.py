"""Statistics of what is hidden."""

import numpy as np
import pytest
from scipy import stats

from heedful.data.corpus.examples import ExampleMaker, Recipe
from heedful.data.corpus.masking import Maskable, choose_masked
from heedful.data.corpus.tokens import PHRASE, WORD
from heedful.errors import HeedfulError

NUMBERS = np.arange(4000)


@pytest.fixture(scope="module", params=["token", "word", "phrase"])
def taken(request, corpus):
    maker = ExampleMaker(corpus, Recipe(max_length=64, masking=request.param, seed=5))
    return maker, maker.take(NUMBERS)


def test_rate(taken):
    maker, examples = taken
    hideable = maker.rules.hideable[examples.originals]
    assert abs(len(examples.masked) / np.count_nonzero(hideable) - 0.15) < 0.003


def test_eighty_ten_ten(taken):
    maker, examples = taken
    seen = examples.ids[examples.masked]
    kinds = len(maker.rules.substitutes)
    total = len(seen)
    observed = [
        np.count_nonzero(seen == maker.rules.mask_id),
        np.count_nonzero((seen != maker.rules.mask_id) & (seen != examples.labels)),
        np.count_nonzero(seen == examples.labels),
    ]
    # A random token is the true one once in a while.
    expected = [0.8 * total, 0.1 * total * (1 - 1 / kinds), 0.1 * total * (1 + 1 / kinds)]
    assert stats.chisquare(observed, expected).pvalue > 1e-3


def test_random_tokens_are_uniform(taken):
    maker, examples = taken
    seen = examples.ids[examples.masked]
    strange = seen[(seen != maker.rules.mask_id) & (seen != examples.labels)]
    counts = np.bincount(strange, minlength=len(maker.rules.hideable))
    assert not counts[~maker.rules.hideable].any()
    assert stats.chisquare(counts[maker.rules.hideable]).pvalue > 1e-4


def test_special_tokens_are_never_hidden_and_nothing_else_changes(taken):
    maker, examples = taken
    assert maker.rules.hideable[examples.labels].all()
    others = np.setdiff1d(np.arange(len(examples.ids)), examples.masked)
    assert np.array_equal(examples.ids[others], examples.originals[others])
    assert len(np.unique(examples.masked)) == len(examples.masked)
    sequences = np.repeat(np.arange(len(NUMBERS)), examples.lengths)
    assert len(np.unique(sequences[examples.masked])) == len(NUMBERS)  # at least one in each


def test_positions_are_hidden_evenly(taken):
    maker, examples = taken
    positions = examples.positions
    full = np.repeat(examples.lengths == examples.lengths.max(), examples.lengths)
    chosen = np.zeros(len(positions), bool)
    chosen[examples.masked] = True
    hideable = maker.rules.hideable[examples.originals]
    rates = [chosen[full & hideable & (positions % 4 == i)].mean() for i in range(4)]
    assert max(rates) - min(rates) < 0.03


@pytest.mark.parametrize(("masking", "bit"), [("word", WORD), ("phrase", PHRASE)])
def test_units_are_hidden_whole(corpus, masking, bit):
    maker = ExampleMaker(corpus, Recipe(max_length=64, masking=masking, pairs="none", seed=2))
    several = 0
    for number in range(500):
        runs = maker.chooser.choose(np.array([number]))
        start, stop = int(runs.a_starts[0]), int(runs.a_stops[0])
        flags = maker.text.read("bounds", start, stop) & bit
        flags[0] = 1
        unit = np.cumsum(flags > 0)
        example = maker.take(np.array([number]))
        assert np.array_equal(example.originals[1:-1], maker.text.read("tokens", start, stop))
        hidden = np.zeros(len(unit), bool)
        hidden[example.masked - 1] = True
        for one in np.unique(unit[hidden]):
            assert hidden[unit == one].all()
            several += np.count_nonzero(unit == one) > 1
    assert several > 500


def test_chinese_words_and_phrases_are_among_the_units(corpus, tokenizer):
    """Words as jieba finds them, and a phrase of the lexicon, each hidden as one."""
    seen = set()
    for masking in ("word", "phrase"):
        maker = ExampleMaker(corpus, Recipe(max_length=64, masking=masking, pairs="none", seed=2))
        for start in range(0, 1000, 100):
            examples = maker.take(np.arange(start, start + 100))
            runs = np.split(examples.masked, np.flatnonzero(np.diff(examples.masked) > 1) + 1)
            originals = examples.originals
            seen |= {(masking, tokenizer.decode(originals[run].tolist()).replace(" ", "")) for run in runs}
    assert {("word", "中国"), ("word", "喜欢"), ("phrase", "中国北京"), ("phrase", "barden")} <= seen


def test_a_long_unit_alone_is_still_hidden(tokenizer):
    rules = Maskable.of(tokenizer)
    ids = np.array([tokenizer.cls_id, *[tokenizer.id_of("ba")] * 8, tokenizer.sep_id])
    starts = np.array([1, 1, 0, 0, 0, 0, 0, 0, 0, 1])
    masked = choose_masked(ids, starts, np.zeros(10, np.int64), np.arange(10), np.array([3]), rules, seed=0)
    assert masked.tolist() == list(range(1, 9))


def test_masks_change_from_epoch_to_epoch_and_seed_to_seed(corpus):
    maker = ExampleMaker(corpus, Recipe(max_length=64, pairs="none", shorter=0))
    size = len(maker)
    first = {tuple(e.originals): tuple(e.masked) for e in _singles(maker, np.arange(size))}
    again = {tuple(e.originals): tuple(e.masked) for e in _singles(maker, np.arange(size, 2 * size))}
    assert first.keys() == again.keys()
    assert sum(first[key] == again[key] for key in first) < 0.05 * size
    other = ExampleMaker(corpus, Recipe(max_length=64, pairs="none", shorter=0, seed=1)).take(np.arange(10))
    assert other.ids.tolist() != maker.take(np.arange(10)).ids.tolist()


def _singles(maker, numbers):
    from heedful.data.corpus.examples import split_examples

    return split_examples(maker.take(numbers))


def test_boundaries_must_have_been_stored(tmp_path, text_file, tokenizer):
    from heedful.data.corpus.build import build_corpus

    plain = build_corpus([str(text_file)], tmp_path / "c", tokenizer)
    for masking in ("word", "phrase"):
        with pytest.raises(HeedfulError, match="holds no"):
            ExampleMaker(plain, Recipe(masking=masking))
