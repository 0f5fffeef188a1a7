"""Every word of a corpus as it is written, for models that read words and not pieces.

A shard that was built with words has, beside the ids of its pieces,

word_list       its distinct words in UTF-8, in the order they first occur, a line each
words           the number of each of its words in that list
word_sentences  where each sentence starts in `words`; sentence i here is sentence i of the pieces

The list is the shard's own, so that memory does not grow with the text, and there is no word that it does not hold.

    text = WholeWords(corpus)
    text.sentence(0)                       # ["The", "cat", "sleeps", "."]
    vocabulary = text.counted(least=5)     # the words that occur five times, the most frequent first
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate

import numpy as np

from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.reading import Part
from heedful.data.shards import Array, Shard
from heedful.errors import HeedfulError

# Of more different words than this the rarest are forgotten while counting, as word2vec has always done.
MOST_WORDS = 20_000_000


class WordLister:
    """Collects the words of one shard."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._words: list[Array] = []
        self._lengths: list[int] = []

    def add(self, sentences: Iterable[Sequence[str]]) -> None:
        """Add sentences."""
        known, numbers = self._numbers, []
        for words in sentences:
            numbers += [known.setdefault(word, len(known)) for word in words]
            self._lengths.append(len(words))
        self._words.append(np.array(numbers, np.uint32))

    def arrays(self) -> dict[str, Array]:
        """What goes into the shard."""
        lengths = np.array(self._lengths, np.int64)
        return {
            "words": np.concatenate([np.empty(0, np.uint32), *self._words]),
            "word_sentences": (np.cumsum(lengths) - lengths).astype(np.uint32),
            "word_list": np.frombuffer("\n".join(self._numbers).encode(), np.uint8),
        }


class WholeWords:
    """The words of one part of a corpus, sentence by sentence."""

    def __init__(self, corpus: Corpus, part: Part = "train") -> None:
        check_whole_words(corpus)
        self.shards = (corpus.train if part == "train" else corpus.held_out).shards
        self._first_sentences = [0, *accumulate(len(shard.arrays["word_sentences"]) for shard in self.shards)]
        self._list = lru_cache(maxsize=4)(lambda number: word_list(self.shards[number]))

    @property
    def total(self) -> int:
        """How many words there are."""
        return sum(len(shard.arrays["words"]) for shard in self.shards)

    @property
    def sentences(self) -> int:
        """How many sentences there are."""
        return self._first_sentences[-1]

    def sentence(self, number: int) -> list[str]:
        """The words of a sentence as they are written."""
        shard = bisect_right(self._first_sentences, number) - 1
        arrays, place = self.shards[shard].arrays, number - self._first_sentences[shard]
        start, *rest = arrays["word_sentences"][place : place + 2].tolist()
        words = self._list(shard)
        return [words[i] for i in arrays["words"][start : rest[0] if rest else None].tolist()]

    def counted(self, least: int = 1, lowercase: bool = False, most: int = MOST_WORDS) -> dict[str, int]:
        """The words that occur at least so often with their counts, the most frequent first; equals by the alphabet.

        Where there are more than `most` different ones, those that are rarest so far are forgotten on the way.
        """
        counts: Counter[str] = Counter()
        floor = 1
        for shard in self.shards:
            times = np.bincount(shard.arrays["words"], minlength=1).tolist()
            for word, count in zip(word_list(shard), times, strict=False):
                counts[word.lower() if lowercase else word] += count
            while len(counts) > most:
                floor += 1
                counts = Counter({word: count for word, count in counts.items() if count >= floor})
        frequent = ((word, count) for word, count in counts.items() if count >= least)
        return dict(sorted(frequent, key=lambda item: (-item[1], item[0])))

    def tables(self, vocabulary: Sequence[str], lowercase: bool = False) -> Iterator[Array]:
        """For each shard the place in `vocabulary` of each word of its list, -1 for what is not in it."""
        places = {word: place for place, word in enumerate(vocabulary)}
        for shard in self.shards:
            words = (word.lower() if lowercase else word for word in word_list(shard))
            yield np.array([places.get(word, -1) for word in words], np.int32)


def word_list(shard: Shard) -> list[str]:
    """The distinct words of a shard, by their numbers."""
    text = shard.arrays["word_list"].tobytes().decode()
    return text.split("\n") if text else []


def check_whole_words(corpus: Corpus) -> None:
    """Refuse a corpus that does not hold its words as they are written."""
    shards = [*corpus.train.shards, *corpus.held_out.shards]
    if not all("word_list" in shard.arrays for shard in shards):
        what = "the corpus does not hold the words as they are written"
        raise HeedfulError(
            what,
            where=corpus.folder,
            remedy="build the corpus again, with its `words`; `heedful corpus build` has it as an option",
        )
