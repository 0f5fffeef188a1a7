"""Pretraining examples by number: runs of sentences joined as [CLS] A [SEP] B [SEP], some tokens hidden."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.masking import Maskable, Masking, choose_masked, disguise
from heedful.data.corpus.pairs import PairChooser, Pairs, Runs
from heedful.data.corpus.reading import Part
from heedful.data.corpus.recipe import ExampleRecipe
from heedful.data.corpus.tokens import PHRASE, WORD
from heedful.data.shards import Array
from heedful.errors import HeedfulError
from heedful.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Recipe(ExampleRecipe):
    """How masked examples are made from a corpus."""

    objective: ClassVar[str] = "mlm"

    pairs: Pairs = "nsp"
    single_sentences: bool = False
    masking: Masking = "token"
    rate: float = 0.15
    shorter: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.rate < 1:
            raise HeedfulError(f"a mask rate of {self.rate} makes no sense", remedy="use one between 0 and 1, as 0.15")

    def without_pairs(self) -> Recipe:
        return replace(self, pairs="none")


@dataclass(frozen=True)
class Examples:
    """Several examples, flat, one after the other as in `heedful.schema`."""

    numbers: Array  # (B,)
    lengths: Array  # (B,)
    ids: Array  # (N,) what the model sees
    segments: Array  # (N,)
    masked: Array  # (M,) flat places of the tokens to predict
    labels: Array  # (M,) what stood there
    nsp: Array | None  # (B,) 0 = B follows A (or, for sentence order, stands in order)

    @cached_property
    def positions(self) -> Array:
        """The place of each token in its sequence, (N,)."""
        firsts = np.cumsum(self.lengths) - self.lengths
        positions: Array = np.arange(len(self.ids)) - np.repeat(firsts, self.lengths)
        return positions

    @cached_property
    def originals(self) -> Array:
        """The ids before anything was hidden, (N,)."""
        ids = self.ids.copy()
        ids[self.masked] = self.labels
        return ids


class ExampleMaker:
    """Makes any examples of one part of a corpus, in any order, always the same for the same number."""

    def __init__(self, corpus: Corpus, recipe: Recipe, part: Part = "train") -> None:
        _check_bounds(corpus, recipe.masking)
        tokenizer = corpus.tokenizer
        check_mask_tokens(tokenizer, corpus.folder)
        self.recipe = recipe
        self.text = corpus.train if part == "train" else corpus.held_out
        self.rules = Maskable.of(tokenizer)
        self.cls_id, self.sep_id = tokenizer.cls_id, tokenizer.sep_id
        room = recipe.max_length - (2 if recipe.pairs == "none" else 3)
        self.chooser = PairChooser(self.text, recipe.pairs, room, recipe.seed, recipe.shorter, recipe.single_sentences)

    def __len__(self) -> int:
        """How many examples go once through the text."""
        return len(self.chooser)

    def take(self, numbers: Array) -> Examples:
        """The examples of these numbers, the longest first; numbers past the end shuffle and hide anew."""
        runs = self.chooser.choose(numbers)
        a, b = runs.lengths
        totals = a + b + (2 if runs.labels is None else 3)
        order = np.argsort(-totals, kind="stable")
        return self._joined(numbers[order], _reordered(runs, order), totals[order])

    def _joined(self, numbers: Array, runs: Runs, lengths: Array) -> Examples:
        """Lay the runs out flat with their special tokens, and hide some of the tokens."""
        ids = np.empty(int(lengths.sum()), np.int64)
        starts = np.ones(len(ids), np.uint8)
        ends = np.cumsum(lengths)
        a, _ = runs.lengths
        firsts = ends - lengths
        ids[firsts], ids[firsts + a + 1], ids[ends - 1] = self.cls_id, self.sep_id, self.sep_id
        self._copy(runs.a_starts, runs.a_stops, firsts + 1, ids, starts)
        if runs.labels is not None:
            self._copy(runs.b_starts, runs.b_stops, firsts + a + 2, ids, starts)
        sequences = np.repeat(np.arange(len(lengths)), lengths)
        positions = np.arange(len(ids)) - firsts[sequences]
        segments = (positions > a[sequences] + 1).astype(np.int64)
        seed = self.recipe.seed
        masked = choose_masked(ids, starts, sequences, positions, numbers, self.rules, seed, self.recipe.rate)
        hidden = disguise(ids, masked, positions[masked], numbers[sequences[masked]], self.rules, seed)
        return Examples(numbers, lengths, hidden, segments, masked, ids[masked], runs.labels)

    def _copy(self, starts: Array, stops: Array, places: Array, ids: Array, unit_starts: Array) -> None:
        bit = {"token": 0, "word": WORD, "phrase": PHRASE}[self.recipe.masking]
        for start, stop, place in zip(starts.tolist(), stops.tolist(), places.tolist(), strict=True):
            end = place + stop - start
            ids[place:end] = self.text.read("tokens", start, stop)
            if bit:
                unit_starts[place:end] = self.text.read("bounds", start, stop) & bit
                unit_starts[place] = 1


def split_examples(examples: Examples) -> list[Examples]:
    """Each example by itself, in the order of their numbers."""
    ends = np.cumsum(examples.lengths)
    sequences = np.repeat(np.arange(len(ends)), examples.lengths)[examples.masked]
    last_masked = np.searchsorted(sequences, np.arange(len(ends)), side="right")
    rows = []
    for row in np.argsort(examples.numbers, kind="stable").tolist():
        start, stop = int(ends[row] - examples.lengths[row]), int(ends[row])
        first, last = int(last_masked[row - 1]) if row else 0, int(last_masked[row])
        rows.append(
            Examples(
                numbers=examples.numbers[row : row + 1],
                lengths=examples.lengths[row : row + 1],
                ids=examples.ids[start:stop],
                segments=examples.segments[start:stop],
                masked=examples.masked[first:last] - start,
                labels=examples.labels[first:last],
                nsp=None if examples.nsp is None else examples.nsp[row : row + 1],
            )
        )
    return rows


def join_examples(rows: Sequence[Examples]) -> Examples:
    """Several sets of examples one after the other in one set."""
    firsts = np.cumsum([0, *(len(row.ids) for row in rows[:-1])])
    nsp = [row.nsp for row in rows if row.nsp is not None]
    return Examples(
        numbers=np.concatenate([row.numbers for row in rows]),
        lengths=np.concatenate([row.lengths for row in rows]),
        ids=np.concatenate([row.ids for row in rows]),
        segments=np.concatenate([row.segments for row in rows]),
        masked=np.concatenate([row.masked + first for row, first in zip(rows, firsts, strict=True)]),
        labels=np.concatenate([row.labels for row in rows]),
        nsp=np.concatenate(nsp) if nsp else None,
    )


def check_mask_tokens(tokenizer: Tokenizer, where: object = None) -> None:
    """Refuse a tokenizer that cannot frame an example or hide a token of it."""
    tokenizer.require(("cls", "sep", "mask"), "masked language modelling", where)


def _reordered(runs: Runs, order: Array) -> Runs:
    labels = None if runs.labels is None else runs.labels[order]
    return Runs(runs.a_starts[order], runs.a_stops[order], runs.b_starts[order], runs.b_stops[order], labels)


def _check_bounds(corpus: Corpus, masking: Masking) -> None:
    if masking == "word" and not corpus.has_words:
        raise HeedfulError("the corpus holds no word boundaries", where=corpus.folder, remedy="build it with `words`")
    if masking == "phrase" and not corpus.has_phrases:
        remedy = "build it with a `lexicon`"
        raise HeedfulError("the corpus holds no phrases of a lexicon", where=corpus.folder, remedy=remedy)
