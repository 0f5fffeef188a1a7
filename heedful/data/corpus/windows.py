"""The micro-batches of word2vec: stretches of text in a new order each epoch, frequent words thinned out by chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from heedful.data.chance import below, hashed, shuffled, uniform
from heedful.data.corpus.phases import Place
from heedful.data.corpus.running_words import RunningWords, Word2VecRecipe
from heedful.data.shards import Array
from heedful.nn.negative_sampling import BLOCK, Sampling, Windows

DRAWN = 16  # negatives that the words of a block share
_KEEP, _REACH, _DRAW, _ORDER = range(4)
_CELLS = 1 << 20  # of the table that negatives are drawn from


@dataclass(frozen=True)
class WindowBatch:
    """A micro-batch: windows of words, and what was read for them."""

    windows: Windows
    how: Sampling
    workers: int
    tokens: int  # words of the text, those left out too
    padding: int = 0

    @property
    def counts(self) -> Mapping[str, int]:
        """The words that windows are around; what the loss is a mean of is known when it is computed."""
        return {"word2vec": int((self.windows.reach > 0).sum())}

    def to(self, device: str) -> WindowBatch:
        """The same on another device."""
        return WindowBatch(self.windows.to(device), self.how, self.workers, self.tokens, self.padding)


class WindowBatches:
    """Any micro-batch of a text, always the same for the same place and rows."""

    def __init__(self, text: RunningWords, recipe: Word2VecRecipe) -> None:
        self.text, self.recipe = text, recipe
        self.how = Sampling(recipe.architecture, recipe.window, recipe.negatives)
        share = text.counts / text.counts.sum()
        # The original's: (√(f / t) + 1) t / f of a word's occurrences are kept.
        kept = (np.sqrt(share / recipe.subsample) + 1) * recipe.subsample
        self.kept = np.minimum(1.0, np.divide(kept, share, out=np.ones_like(share), where=share > 0))
        self.noise = noise_table(text.counts)

    def take(self, place: Place, rows: Array) -> WindowBatch:
        """The micro-batch of some rows of a step, each a stretch of text."""
        return self.of_stretches(place.first + rows)

    def of_stretches(self, numbers: Array) -> WindowBatch:
        """The micro-batch of stretches by number; past the last one, they come again in another order."""
        parts = [self._thinned(number) for number in numbers.tolist()]
        ids, sentences, reach = (np.concatenate(arrays) for arrays in zip(*(p[:3] for p in parts), strict=True))
        key = int(hashed(self.recipe.seed, _DRAW, numbers[0])[0])
        windows, read = self._windows(ids, sentences, reach, key), sum(part[3] for part in parts)
        return WindowBatch(windows, self.how, self.recipe.workers, read)

    def _thinned(self, number: int) -> tuple[Array, Array, Array, int]:
        """A stretch without the occurrences that chance leaves out, each word with the reach of its window."""
        epoch, place = divmod(number, len(self.text))
        seed = self.recipe.seed
        text = self.text.stretch(int(shuffled(np.array([place]), len(self.text), seed, _ORDER, epoch)[0]))
        places = np.arange(len(text.ids))
        keep = uniform(seed, _KEEP, number, places) < self.kept[text.ids]
        reach = 1 + below(self.recipe.window, seed, _REACH, number, places)
        # Sentences of neighbouring stretches must not be taken for one.
        return text.ids[keep], text.sentences[keep] + (number << 20), reach[keep], text.read

    def _windows(self, ids: Array, sentences: Array, reach: Array, key: int) -> Windows:
        """Lay words out in whole blocks; what fills the last one up has no window and is in none."""
        blocks = max(1, -(-len(ids) // BLOCK))
        before, after = self.recipe.window, blocks * BLOCK - len(ids) + self.recipe.window
        drawn = np.random.default_rng(key).integers(0, len(self.noise), (blocks, DRAWN))
        padded = (np.pad(x.astype(np.int64), (before, after)) for x in (ids, sentences, reach))
        words, of_sentences, reaches = map(torch.from_numpy, padded)
        return Windows(words, of_sentences, reaches, torch.from_numpy(self.noise[drawn]))


def noise_table(counts: Array) -> Array:
    """Ids as often as they are to be drawn, in proportion to count^(3/4)."""
    weights = np.cumsum(counts.astype(np.float64) ** 0.75)
    cells = (np.arange(_CELLS) + 0.5) * (weights[-1] / _CELLS)
    table: Array = np.searchsorted(weights, cells, side="right").astype(np.int64)
    return table
