"""Encoding: layout, truncation, offsets, word numbers, threads, bad input."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import HeedfulError
from heedful.text.tokenizer import was_truncated


def test_layout_of_one_text_and_of_a_pair(wordpiece):
    one = wordpiece.encode("the garden")
    assert one.tokens[0] == "[CLS]" and one.tokens[-1] == "[SEP]" and set(one.type_ids) == {0}
    pair = wordpiece.encode("the", pair="sea")
    first_sep = pair.tokens.index("[SEP]")
    assert pair.type_ids == [0] * (first_sep + 1) + [1] * (len(pair) - first_sep - 1)
    assert pair.tokens[-1] == "[SEP]"


def test_special_ids(wordpiece):
    assert wordpiece.vocabulary[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    ids = wordpiece.pad_id, wordpiece.unk_id, wordpiece.cls_id, wordpiece.sep_id, wordpiece.mask_id
    assert ids == (0, 1, 2, 3, 4)
    assert wordpiece.vocab_size == len(wordpiece.vocabulary)
    assert wordpiece.encode("the [MASK]").ids[-2] == wordpiece.mask_id


def test_offsets_and_words_count_code_points(wordpiece):
    text = "😀 Zoë爱 walking"
    encoding = wordpiece.encode(text)
    parts = {}
    for word, (start, end) in zip(encoding.word_ids, encoding.offsets, strict=True):
        if word is not None:
            parts[word] = parts.get(word, "") + text[start:end]
    assert list(parts.values()) == ["😀", "Zoë", "爱", "walking"]


def test_a_word_of_more_than_100_characters_is_unknown(wordpiece):
    assert wordpiece.unk_id not in wordpiece.encode("a" * 100).ids
    assert wordpiece.encode("a" * 101).tokens == ["[CLS]", "[UNK]", "[SEP]"]


def test_truncation_keeps_the_left_part_and_tells(wordpiece):
    whole = wordpiece.encode("loved loves loving walked walking")
    cut = wordpiece.encode("loved loves loving walked walking", max_length=5)
    assert cut.ids == [*whole.ids[:4], wordpiece.sep_id]
    assert was_truncated(cut) and not was_truncated(whole)
    assert not was_truncated(wordpiece.encode("loved", max_length=len(wordpiece.encode("loved"))))


def test_the_longer_side_of_a_pair_is_cut_first(wordpiece):
    short, long = "爱", "我爱北京天安门" * 3
    assert wordpiece.encode(short, long, max_length=9).sequence_ids.count(0) == 1
    assert wordpiece.encode(long, short, max_length=9).sequence_ids.count(1) == 1
    both = wordpiece.encode(long, long, max_length=9).sequence_ids
    assert both.count(0) == both.count(1) == 3


@pytest.mark.parametrize("offsets", [True, False])
def test_a_very_long_pair_is_cut_like_any_other(wordpiece, offsets):
    # Long enough that the sides are shortened before the library sees them.
    first, second = "loved walking 爱, " * 400, "unaffordable 中国 " * 500
    cut = wordpiece.encode_batch([(first, second)], max_length=20, offsets=offsets)[0]
    alone = [wordpiece.encode(side).ids[1:-1] for side in (first, second)]
    kept = [cut.sequence_ids.count(side) for side in (0, 1)]
    assert sum(kept) == 17 and max(kept) - min(kept) == 1
    cls, sep = [wordpiece.cls_id], [wordpiece.sep_id]
    assert cut.ids == cls + alone[0][: kept[0]] + sep + alone[1][: kept[1]] + sep
    assert was_truncated(cut) and len(cut.overflowing) < 100


@given(st.text("loved 爱国a,.", max_size=60), st.text("walk 北京,.", max_size=60), st.integers(4, 30))
def test_a_cut_pair_is_the_left_part_of_both_sides(wordpiece, first, second, max_length):
    first_ids, second_ids = (wordpiece.encode(side).ids[1:-1] for side in (first, second))
    cut = wordpiece.encode(first, second, max_length)
    kept = [cut.sequence_ids.count(side) for side in (0, 1)]
    cls, sep = [wordpiece.cls_id], [wordpiece.sep_id]
    assert cut.ids == cls + first_ids[: kept[0]] + sep + second_ids[: kept[1]] + sep
    total = len(first_ids) + len(second_ids)
    assert sum(kept) == min(total, max_length - 3)
    assert was_truncated(cut) == (total > max_length - 3)
    for mine, other, here in ((kept[0], kept[1], len(first_ids)), (kept[1], kept[0], len(second_ids))):
        assert mine == here or other <= mine + 1  # a side is cut only when the other is not longer


def test_batches_equal_single_texts_with_and_without_offsets(wordpiece):
    texts = ["", "the sea", "爱" * 30, "walked"]
    singles = [wordpiece.encode(text, max_length=8).ids for text in texts]
    assert [e.ids for e in wordpiece.encode_batch(texts, 8)] == singles
    assert [e.ids for e in wordpiece.encode_batch(texts, 8, offsets=False)] == singles
    assert wordpiece.encode_batch([], 8) == []
    bare = wordpiece.encode_batch(["the sea"], offsets=False)[0]
    assert set(bare.offsets) == {(0, 0)} and set(bare.word_ids) == {None}


def test_threads_with_different_lengths_do_not_disturb_one_another(wordpiece):
    text = "我爱北京天安门" * 10
    lengths = [4 + i % 9 for i in range(200)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda length: len(wordpiece.encode(text, max_length=length)), lengths))
    assert found == lengths


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (["ok", None], "number 2 of this batch.*NoneType"),
        (["\ud800"], "surrogate"),
        ([("a", 3)], "number 1 of this batch.*int"),
    ],
)
def test_what_is_no_text_is_named(wordpiece, texts, names):
    with pytest.raises(HeedfulError, match=names):
        wordpiece.encode_batch(texts)


@pytest.mark.parametrize(("pair", "max_length"), [(None, 2), ("b", 3)])
def test_a_length_without_room_is_refused(wordpiece, pair, max_length):
    with pytest.raises(HeedfulError, match="no room"):
        wordpiece.encode("a", pair, max_length)


def test_copies_that_cut_are_few_and_cut_right(wordpiece):
    text = "she loved the garden"
    for max_length in [*range(3, 20), 3]:
        assert wordpiece.encode(text, max_length=max_length).ids[-1] == wordpiece.sep_id
        assert len(wordpiece.encode(text, max_length=max_length)) == min(max_length, len(wordpiece.encode(text)))
    assert wordpiece._cutting.cache_info().currsize <= 8


def test_pieces_are_those_between_the_special_tokens(wordpiece):
    texts = ["She loved  the garden", "", "我爱 Python"]
    for text, pieces in zip(texts, wordpiece.pieces(texts), strict=True):
        whole = wordpiece.encode(text)
        assert pieces.ids == whole.ids[1:-1] and pieces.offsets == whole.offsets[1:-1]
        assert wordpiece.frame.joined(pieces.ids) == (whole.ids, whole.type_ids)
    pair = wordpiece.encode("the garden", pair="我爱")
    first, second = wordpiece.pieces(["the garden", "我爱"])
    assert wordpiece.frame.joined(first.ids, second.ids) == (pair.ids, pair.type_ids)
    with pytest.raises(HeedfulError, match="text number 2"):
        wordpiece.pieces(["ok", "\ud800"])


def test_words_that_are_given_keep_their_numbers(wordpiece):
    words = ["She", "loved", "\u200b", "U.S.", "我爱", "the garden"]
    (encoding, empty, pair) = wordpiece.encode_words([words, [], ("the", "sea")])
    assert len(empty) == 0 and set(pair.word_ids) == {0, 1}
    assert sorted(set(encoding.word_ids)) == [0, 1, 3, 4, 5]
    for number, word in enumerate(words):
        alone = wordpiece.pieces([word])[0].ids
        assert [i for i, w in zip(encoding.ids, encoding.word_ids, strict=True) if w == number] == alone
    with pytest.raises(HeedfulError, match=r"word number 2 of this batch.*int"):
        wordpiece.encode_words([["a", 3]])
