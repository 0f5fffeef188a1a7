"""A corpus built with words gives every word back as it is written."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from heedful.data.corpus.build import ReadingSettings, build_corpus
from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.tokens import TokenSettings
from heedful.data.corpus.whole_words import WholeWords
from heedful.errors import HeedfulError
from heedful.text.sentences import split_sentences
from heedful.text.tokenizer import Tokenizer
from heedful.text.words import split_words, words

TEXT = """Zoë didn't see the 3.5-litre ΩMEGA, or 龘龘 there. The the THE!
我们喜欢研究语言模型。Emoji 🙂🙂 and state-of-the-art.

\u200b
另一个document。It ends here"""


def built(folder: Path, text: Path, tokenizer: Tokenizer, words: bool = True, unit_bytes: int = 4_000_000) -> Corpus:
    reading = ReadingSettings(held_out_share=0.0, unit_bytes=unit_bytes)
    return build_corpus([str(text)], folder, tokenizer, TokenSettings(words=words), reading)


def sentences_of(text: str) -> list[list[str]]:
    return [split_words(s) for line in text.split("\n") for s in split_sentences(line)]


def test_every_word_comes_back_as_it_is_written(tokenizer: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    corpus = built(tmp_path / "corpus", tmp_path / "text.txt", tokenizer)
    assert tokenizer.unk_id in corpus.train.read("tokens", 0, 10)  # of the pieces much is unknown
    found = WholeWords(corpus)
    given = [words for words in sentences_of(TEXT) if words != ["\u200b"]]  # the tokenizer reads nothing there
    assert [found.sentence(i) for i in range(found.sentences)] == given
    assert {"didn't", "3.5-litre", "ΩMEGA", "龘", "🙂", "喜欢", "state-of-the-art"} <= set(chain.from_iterable(given))
    assert found.sentences == corpus.train.sentences and found.total == sum(map(len, given))


def test_many_shards_count_as_the_text_does(text_file: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    corpus = built(tmp_path / "corpus", text_file, tokenizer, unit_bytes=20_000)
    found, given = WholeWords(corpus), sentences_of(text_file.read_text(encoding="utf-8"))
    assert len(found.shards) > 3 and found.total == sum(map(len, given)) == sum(
        entry["words"] for entry in corpus.manifest["shards"]["train"]
    )
    for i in np.random.default_rng(0).integers(0, found.sentences, 50).tolist():
        assert found.sentence(i) == given[i]
    counts = Counter(word.lower() for words in given for word in words)
    counted = found.counted(least=20, lowercase=True)
    assert counted == {word: count for word, count in counts.items() if count >= 20}
    assert list(counted.values()) == sorted(counted.values(), reverse=True)


def test_the_tables_of_the_shards_lead_into_one_vocabulary(
    text_file: Path, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    found = WholeWords(built(tmp_path / "corpus", text_file, tokenizer, unit_bytes=20_000))
    vocabulary = list(found.counted(least=30))
    tables = list(found.tables(vocabulary))
    first = [word for i in range(40) for word in found.sentence(i)]
    numbers = found.shards[0].arrays["words"][: len(first)]
    expected = [vocabulary.index(word) if word in vocabulary else -1 for word in first]
    assert len(tables) == len(found.shards) and tables[0][numbers].tolist() == expected


def test_too_many_different_words_leave_the_frequent_ones(
    text_file: Path, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    found = WholeWords(built(tmp_path / "corpus", text_file, tokenizer))
    few = found.counted(most=50)
    assert 0 < len(few) <= 50 and list(few)[:10] == list(found.counted())[:10]


def test_words_by_shape_are_those_of_the_spans() -> None:
    for text in (*TEXT.split("\n"), "a 中 b", "don’t 1,000.5 x-", ""):
        assert split_words(text) == [text[start:end] for start, end in words(text)]


def test_a_corpus_without_words_is_refused(text_file: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    corpus = built(tmp_path / "corpus", text_file, tokenizer, words=False)
    with pytest.raises(HeedfulError, match=r"does not hold the words(.|\n)*`words`"):
        WholeWords(corpus)
