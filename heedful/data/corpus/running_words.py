"""The text of a corpus as word2vec reads it: whole words or the tokenizer's pieces, rare and special ones left out.

text = running_words(corpus, recipe)          # counts what there is
text.vocabulary, text.counts                  # ids 0 … V - 1; a count of 0 is a word that never occurs
text.stretch(7).ids                           # of the 8th stretch of text
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Literal, NamedTuple

import numpy as np

from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.reading import Part
from heedful.data.corpus.recipe import ExampleRecipe
from heedful.data.corpus.whole_words import WholeWords
from heedful.data.shards import Array, Shard
from heedful.errors import HeedfulError
from heedful.nn.negative_sampling import Architecture
from heedful.text.word_tokenizer import UNKNOWN

Unit = Literal["word", "piece"]


@dataclass(frozen=True)
class Word2VecRecipe(ExampleRecipe):
    """What word2vec learns from; the defaults are those of the original and of gensim."""

    objective: str = "word2vec"

    unit: Unit = "word"
    min_count: int = 5
    cased: bool = False  # whether Words and words are two
    architecture: Architecture = "skip-gram"
    window: int = 5
    negatives: int = 5
    subsample: float = 1e-3
    workers: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("min_count", "window", "negatives", "workers"):
            if getattr(self, name) < 1:
                raise HeedfulError(f"`{name}` is {getattr(self, name)}", remedy="use at least 1")
        if not self.subsample > 0:
            remedy = "use a share above 0, as 0.001; 1 keeps every word"
            raise HeedfulError(f"`subsample` is {self.subsample}", remedy=remedy)


class Stretch(NamedTuple):
    """Some running text."""

    ids: Array
    sentences: Array  # the number of each id's sentence, counted within the stretch
    read: int  # how many words were read, those left out too


@dataclass(frozen=True)
class RunningWords:
    """One part of a corpus as ids, cut into stretches of text that may be read in any order."""

    vocabulary: Sequence[str]
    counts: Array  # (V,) how often each occurs in the training text
    shards: Sequence[Shard]
    numbers: str  # the array of a shard that holds what was read,
    starts: str  # and the one that says where its sentences start
    tables: Sequence[Array]  # for each shard, what is read -> id, -1 for what is left out
    length: int  # of a stretch, before anything is left out

    @cached_property
    def _firsts(self) -> list[int]:
        """The number of each shard's first stretch, and last how many there are."""
        return [0, *accumulate(-(-len(shard.arrays[self.numbers]) // self.length) for shard in self.shards)]

    def __len__(self) -> int:
        """How many stretches there are."""
        return self._firsts[-1]

    @property
    def size(self) -> int:
        """How many words there are before anything is left out."""
        return sum(len(shard.arrays[self.numbers]) for shard in self.shards)

    def stretch(self, number: int) -> Stretch:
        """A stretch of text by its number."""
        shard = bisect_right(self._firsts, number) - 1
        arrays, start = self.shards[shard].arrays, (number - self._firsts[shard]) * self.length
        ids = self.tables[shard][arrays[self.numbers][start : start + self.length]]
        first, last = np.searchsorted(arrays[self.starts], [start + 1, start + self.length])
        begins = np.zeros(len(ids), np.int64)
        begins[arrays[self.starts][first:last].astype(np.int64) - start] = 1
        known = ids >= 0
        return Stretch(ids[known], np.cumsum(begins)[known], len(ids))


def running_words(corpus: Corpus, recipe: Word2VecRecipe, part: Part = "train") -> RunningWords:
    """The text of a part of a corpus, its words numbered by those of the training text."""
    if recipe.unit == "piece":
        return _pieces(corpus, recipe, part)
    vocabulary, counts = _counted(_Key(corpus), recipe.min_count, not recipe.cased)
    text = WholeWords(corpus, part)
    tables = list(text.tables(vocabulary, not recipe.cased))
    return RunningWords(vocabulary, counts, text.shards, "words", "word_sentences", tables, recipe.max_length)


class _Key:
    """A corpus by its manifest, so that its words are counted once in a run."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus, self.checksum = corpus, corpus.manifest["checksum"]

    def __hash__(self) -> int:
        return hash(self.checksum)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.checksum == other.checksum


@lru_cache(maxsize=2)
def _counted(key: _Key, min_count: int, lowercase: bool) -> tuple[list[str], Array]:
    found = WholeWords(key.corpus).counted(min_count, lowercase)
    if not found:
        what = f"no word occurs {min_count} times"
        raise HeedfulError(what, where=key.corpus.folder, remedy="give more text, or a lower `min_count`")
    found.pop(UNKNOWN, None)  # a row of its own, which no word of the text has
    return [UNKNOWN, *found], np.array([0, *found.values()], np.int64)


def piece_counts(corpus: Corpus) -> Array:
    """How often each piece occurs in the training text, (V,); special ones, [UNK] among them, count as none."""
    pieces, tokenizer = corpus.tokenizer.vocab_size, corpus.tokenizer
    counts = sum(np.bincount(shard.arrays["tokens"], minlength=pieces) for shard in corpus.train.shards)
    assert isinstance(counts, np.ndarray)
    special = [tokenizer.id_of(token) for token in tokenizer.special_tokens.values()]
    counts[[number for number in special if number is not None]] = 0
    return counts


def _pieces(corpus: Corpus, recipe: Word2VecRecipe, part: Part) -> RunningWords:
    """The pieces as they are, but for [UNK], which stands for no word, and the other special tokens."""
    vocabulary, counts = corpus.tokenizer.vocabulary, piece_counts(corpus)
    counts[counts < recipe.min_count] = 0
    if not counts.any():
        what = f"no piece occurs {recipe.min_count} times"
        raise HeedfulError(what, where=corpus.folder, remedy="give more text, or a lower `min_count`")
    table = np.where(counts > 0, np.arange(len(vocabulary)), -1).astype(np.int32)
    shards = (corpus.train if part == "train" else corpus.held_out).shards
    return RunningWords(vocabulary, counts, shards, "tokens", "sentences", [table] * len(shards), recipe.max_length)
