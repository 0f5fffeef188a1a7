"""The same examples for any order, batch, number of processes and micro-batches."""

import dataclasses

import numpy as np
import pytest

from heedful.data.corpus.examples import ExampleMaker, Recipe, join_examples, split_examples
from heedful.data.corpus.phases import Phase, PretrainingSource
from heedful.data.corpus.source import MaskedBatches, as_micro_batch, held_out_micro_batches
from heedful.data.corpus.written import WrittenExamples, examples_folder, write_examples
from heedful.errors import HeedfulError

RECIPE = Recipe(max_length=48, masking="word", seed=9)


@pytest.fixture(scope="module")
def maker(corpus):
    return ExampleMaker(corpus, RECIPE)


def same(one, other):
    return all(
        np.array_equal(getattr(one, field.name), getattr(other, field.name)) for field in dataclasses.fields(one)
    )


def rows(micro_batches):
    """The sequences of some micro-batches, each with its masked places, labels and verdict, in a fixed order."""
    found = []
    for micro_batch in micro_batches:
        ends = np.cumsum(micro_batch.batch.lengths)
        for i, end in enumerate(ends):
            start = end - micro_batch.batch.lengths[i]
            here = (micro_batch.masked >= start) & (micro_batch.masked < end)
            found.append(
                (
                    tuple(micro_batch.batch.ids[start:end].tolist()),
                    tuple(micro_batch.batch.segments[start:end].tolist()),
                    tuple((micro_batch.masked[here] - start).tolist()),
                    tuple(micro_batch.labels[here].tolist()),
                    int(micro_batch.nsp[i]),
                )
            )
    return sorted(found)


def test_an_example_does_not_depend_on_its_company(maker):
    numbers = np.array([7, 100_003, 0, 31, 5_000_000_000])
    together = split_examples(maker.take(numbers))
    for one, number in zip(together, sorted(numbers.tolist()), strict=True):
        assert same(one, maker.take(np.array([number])))


def test_form_of_an_example(maker, tokenizer):
    for example in split_examples(maker.take(np.arange(200))):
        ids, segments = example.originals, example.segments
        assert ids[0] == tokenizer.cls_id and ids[-1] == tokenizer.sep_id and len(ids) <= 48
        second = np.flatnonzero(ids == tokenizer.sep_id)[0]
        assert segments.tolist() == [0] * (second + 1) + [1] * (len(ids) - second - 1)


def test_splitting_and_joining(maker):
    examples = maker.take(np.arange(20))
    ordered = join_examples(split_examples(examples))
    assert ordered.numbers.tolist() == list(range(20))
    assert all(same(a, b) for a, b in zip(split_examples(ordered), split_examples(examples), strict=True))


@pytest.mark.parametrize(("world", "accumulate"), [(1, 1), (1, 4), (2, 1), (2, 3), (5, 2)])
def test_all_ranks_and_micro_batches_hold_the_same_batch(maker, world, accumulate):
    source = PretrainingSource([Phase(MaskedBatches(maker), 100, 24)])
    whole = rows(source.step(17))
    dealt = [micro_batch for rank in range(world) for micro_batch in source.step(17, rank, world, accumulate)]
    assert len(dealt) == world * accumulate and rows(dealt) == whole and len(whole) == 24
    assert sum(micro_batch.counts["nsp"] for micro_batch in dealt) == 24


def test_phases_go_on_with_fresh_examples(corpus, maker):
    longer = ExampleMaker(corpus, dataclasses.replace(RECIPE, max_length=96))
    source = PretrainingSource([Phase(MaskedBatches(maker), 3, 8), Phase(MaskedBatches(longer), 2, 4)])
    assert source.steps == 5
    assert rows(source.step(2)) == rows([as_micro_batch(maker.take(np.arange(16, 24)))])
    assert rows(source.step(3)) == rows([as_micro_batch(longer.take(np.arange(24, 28)))])
    assert rows(source.step(9)) == rows([as_micro_batch(longer.take(np.arange(48, 52)))])


def test_micro_batch_is_a_flat_batch_sorted_by_length(maker):
    (micro_batch,) = PretrainingSource([Phase(MaskedBatches(maker), 1, 16)]).step(0)
    lengths = micro_batch.batch.lengths
    assert list(lengths) == sorted(lengths, reverse=True)
    assert micro_batch.tokens == sum(lengths) == len(micro_batch.batch.ids)
    assert micro_batch.padding == 16 * lengths[0] - micro_batch.tokens
    assert micro_batch.counts == {"mlm": len(micro_batch.masked), "nsp": 16}
    assert [p for n in lengths for p in range(n)] == micro_batch.batch.positions.tolist()
    assert len(micro_batch.batch.groups) == len(set(lengths))


def test_a_batch_that_cannot_be_dealt(maker):
    with pytest.raises(HeedfulError, match="cannot be dealt"):
        PretrainingSource([Phase(MaskedBatches(maker), 1, 3)]).step(0, 0, 2, 2)


def test_held_out_examples_are_fixed_and_unseen(corpus):
    examples = ExampleMaker(corpus, dataclasses.replace(RECIPE, pairs="none"), "held_out")
    once, again = (list(held_out_micro_batches(examples, 16, most=40)) for _ in range(2))
    assert [len(micro_batch.batch.lengths) for micro_batch in once] == [16, 16, 8]
    assert all(a.batch.ids.equal(b.batch.ids) and a.masked.equal(b.masked) for a, b in zip(once, again, strict=True))
    assert once[0].nsp is None and "nsp" not in once[0].counts
    train = ExampleMaker(corpus, dataclasses.replace(RECIPE, pairs="none", shorter=0))
    seen = {tuple(one.originals) for one in split_examples(train.take(np.arange(len(train))))}
    unseen = ExampleMaker(corpus, dataclasses.replace(RECIPE, pairs="none", shorter=0), "held_out")
    assert not seen & {tuple(one.originals) for one in split_examples(unseen.take(np.arange(len(unseen))))}


def test_examples_written_ahead_are_the_same(corpus, maker, monkeypatch):
    monkeypatch.setattr("heedful.data.corpus.written.EXAMPLES_IN_SHARD", 700)
    total = sum(write_examples(corpus.folder, RECIPE, duplicates=2))
    written = WrittenExamples(corpus, RECIPE, duplicates=2, verify=True)
    assert len(written) == total == 2 * len(maker)
    numbers = np.array([0, total - 1, 699, 700, 5])
    for one, other in zip(split_examples(written.take(numbers)), split_examples(maker.take(numbers)), strict=True):
        assert same(one, other)
    assert same(*(split_examples(written.take(np.array([3]) + shift))[0] for shift in (0, total)))
    shard = sorted(examples_folder(corpus.folder, RECIPE, 2).glob("*"))[1]
    before = shard.read_bytes()
    shard.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
    with pytest.raises(HeedfulError, match="damaged"):
        WrittenExamples(corpus, RECIPE, 2, verify=True)
    assert sum(write_examples(corpus.folder, RECIPE, 2)) == total and shard.read_bytes() == before
    with pytest.raises(HeedfulError, match="not \\(all\\) written"):
        WrittenExamples(corpus, RECIPE, duplicates=3)
