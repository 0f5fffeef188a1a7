"""Stretches of whole words for ELMo: each word as its bytes, and its number in the vocabulary that is predicted.

    stream   <S> The cat sleeps . </S> <S> It …          stretches of one length, by number, in a random order

Words come from the text, so that none is unknown to the model that reads them. What is predicted is a word of a stated
vocabulary, the most frequent ones; all others are one, <UNK>. A word of ideographs is read ideograph by ideograph.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from heedful.data.batching import flat_batch
from heedful.data.chance import below, shuffled
from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.phases import Place
from heedful.data.corpus.reading import Part
from heedful.data.corpus.recipe import ExampleRecipe
from heedful.data.corpus.whole_words import WholeWords, word_list
from heedful.data.shards import Array, Shard
from heedful.errors import HeedfulError
from heedful.schema import Batch
from heedful.text.elmo_pipeline import BEGIN, END, word_ids
from heedful.text.ideographs import IDEOGRAPHS

# The first words of every vocabulary: all that is not in it, and the two ends of a sentence.
UNKNOWN, BEGIN_WORD, END_WORD = "<UNK>", "<S>", "</S>"
SHARDS_IN_MEMORY = 64
# What a random number is for.
_SHIFT, _ORDER = 50, 51
_PARTS = re.compile(rf"[{IDEOGRAPHS}]|[^{IDEOGRAPHS}]+")


@dataclass(frozen=True)
class BilmRecipe(ExampleRecipe):
    """How stretches of words are made from a corpus; `max_length` counts words."""

    objective: str = "bilm"

    softmax_words: int = 20_000


@dataclass(frozen=True)
class BilmMicroBatch:
    """B stretches of T words."""

    batch: Batch  # their bytes
    labels: Tensor  # (B, T) their numbers in the vocabulary
    padding: int = 0

    @property
    def counts(self) -> Mapping[str, int]:
        """What the sum of each loss is to be divided by: every word has a next one but the last of a stretch."""
        predicted = self.labels.shape[0] * (self.labels.shape[1] - 1)
        return {"forward": predicted, "backward": predicted}

    @property
    def tokens(self) -> int:
        """How many words there are."""
        return self.labels.numel()

    def to(self, device: str) -> BilmMicroBatch:
        """The same on another device."""
        return replace(self, batch=self.batch.to(device), labels=self.labels.to(device))


def softmax_vocabulary(corpus: Corpus, most: int) -> list[str]:
    """The words to be predicted: <UNK>, the ends of a sentence, and the most frequent words of the training text."""
    counts: Counter[str] = Counter()
    for word, count in WholeWords(corpus).counted().items():
        for part in _PARTS.findall(word):
            counts[part] += count
    words = sorted(counts, key=lambda word: (-counts[word], word))
    return [UNKNOWN, BEGIN_WORD, END_WORD, *words[: max(most - 3, 1)]]


class _ShardWords(NamedTuple):
    """A shard as a stream: what stands at each place, and of each distinct word its ids and its label."""

    stream: Array  # (S,) numbers of distinct words, of which the last two are the ends of a sentence
    ids: list[list[int]]
    labels: Array


class WordWindows:
    """Makes any stretches of one part of a corpus, in any order, always the same for the same number."""

    def __init__(
        self, corpus: Corpus, vocabulary: Sequence[str], length: int, seed: int = 0, part: Part = "train"
    ) -> None:
        self.length, self.seed = length, seed
        self.shards = WholeWords(corpus, part).shards
        self.places = {word: number for number, word in enumerate(vocabulary)}
        # Whatever the shift of a round, so many stretches fit into each shard.
        counts = [max(0, _size(shard) // length - 1) for shard in self.shards]
        self._firsts = [0, *accumulate(counts)]
        self._read = lru_cache(maxsize=SHARDS_IN_MEMORY)(self._opened)
        if not self._firsts[-1]:
            what = f"the text has too few words for stretches of {length}"
            raise HeedfulError(what, where=corpus.folder, remedy="use shorter `phases`, or a larger corpus")

    def __len__(self) -> int:
        """How many stretches go once through the text."""
        return self._firsts[-1]

    def take(self, place: Place, rows: Array) -> BilmMicroBatch:
        """These rows of the batch at a place."""
        return self.numbered(place.first + rows)

    def numbered(self, numbers: Array) -> BilmMicroBatch:
        """The stretches of these numbers; past the end they are cut elsewhere and shuffled anew."""
        sequences, labels = [], []
        for number in numbers.tolist():
            turn, place = divmod(number, len(self))
            chosen = int(shuffled(np.array([place]), len(self), self.seed, _ORDER, turn)[0])
            shard = int(np.searchsorted(self._firsts, chosen, side="right")) - 1
            shift = int(below(self.length, self.seed, _SHIFT, turn)[0])
            start = shift + (chosen - self._firsts[shard]) * self.length
            words = self._read(shard)
            window = words.stream[start : start + self.length]
            sequences.append([number for word in window.tolist() for number in words.ids[word]])
            labels.append(words.labels[window])
        return BilmMicroBatch(flat_batch(sequences), torch.from_numpy(np.stack(labels)))

    def _opened(self, number: int) -> _ShardWords:
        shard = self.shards[number]
        distinct: dict[str, int] = {}
        spelled = [[distinct.setdefault(p, len(distinct)) for p in _PARTS.findall(word)] for word in word_list(shard)]
        begin, end = len(distinct), len(distinct) + 1
        words, starts = shard.arrays["words"], shard.arrays["word_sentences"].astype(np.int64)
        stops = np.append(starts[1:], len(words))
        stream: list[int] = []
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
            stream.append(begin)
            for word in words[start:stop].tolist():
                stream += spelled[word]
            stream.append(end)
        ids = [*(word_ids(word) for word in distinct), [BEGIN], [END]]
        labels = [self.places.get(word, 0) for word in (*distinct, BEGIN_WORD, END_WORD)]
        return _ShardWords(np.array(stream, np.int64), ids, np.array(labels, np.int64))


def _size(shard: Shard) -> int:
    """At least how many places the stream of a shard has: more where words are taken apart."""
    return len(shard.arrays["words"]) + 2 * len(shard.arrays["word_sentences"])
