"""Tokenizers of whole words cut texts as the words of a corpus are cut, and are kept in one file."""

from __future__ import annotations

from pathlib import Path

from heedful.text.tokenizer import Tokenizer
from heedful.text.word_tokenizer import word_tokenizer
from heedful.text.words import split_words

WORDS = ["[UNK]", "the", "cat", "didn't", "中国", "中国人", "人", "3.5", "state-of-the-art", "."]
TEXTS = ["The CAT didn't.", "naïve 5² x_y hello...world Ωmega ①② don’t 1,000.5", "a🙂b", "-x- 'y'", ""]


def test_words_are_cut_as_in_a_corpus() -> None:
    for text in TEXTS:
        known = ["[UNK]", *dict.fromkeys(split_words(text))]
        assert word_tokenizer(known, lowercase=False).encode(text).tokens == split_words(text)


def test_the_longest_chinese_word_is_taken_and_unknown_words_are_one_token() -> None:
    encoding = word_tokenizer(WORDS, lowercase=True).encode("The zebra 中国人中国木 3.5")
    assert encoding.tokens == ["the", "[UNK]", "中国人", "中国", "[UNK]", "3.5"]
    assert encoding.offsets == [(0, 3), (4, 9), (10, 13), (13, 15), (15, 16), (17, 20)]
    assert encoding.word_ids == list(range(6))


def test_it_is_saved_and_loaded(tmp_path: Path) -> None:
    tokenizer = word_tokenizer(WORDS, lowercase=True)
    tokenizer.save(tmp_path)
    again = Tokenizer.load(tmp_path)
    assert again.vocabulary == WORDS == tokenizer.vocabulary
    for text in (*TEXTS, "中国人的cat"):
        assert again.encode(text).ids == tokenizer.encode(text).ids
    assert again.frame.single.size == 0
