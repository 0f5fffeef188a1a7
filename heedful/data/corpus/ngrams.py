"""What counting alone predicts: unigram and bigram models of the training text, scored where tokens are hidden.

The unigram is smoothed by adding one. The bigram is interpolated Kneser–Ney (Chen and Goodman, 1999) and is told the
true token to the left, hidden or not; it does not see the right. Where the left neighbour is [CLS] or [SEP], which the
text does not hold, it falls back to its lower order. Neither ever guesses a special token.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from heedful.data.corpus.corpus import Corpus, TokenText
from heedful.data.corpus.examples import Examples
from heedful.data.corpus.masking import text_pieces
from heedful.data.shards import Array

MOST_TOKENS = 20_000_000


@dataclass(frozen=True)
class BaselineScores:
    """Mean loss in nats and share of right guesses of both models."""

    unigram_loss: float
    unigram_accuracy: float
    bigram_loss: float
    bigram_accuracy: float
    tokens: int


class NgramBaselines:
    """Unigram and bigram counts of a corpus's training text."""

    def __init__(self, corpus: Corpus, most_tokens: int = MOST_TOKENS) -> None:
        self.hideable = text_pieces(corpus.tokenizer)
        self.size = len(self.hideable)
        counts = np.zeros(self.size, np.int64)
        codes, code_counts = np.empty(0, np.int64), np.empty(0, np.int64)
        for tokens, inner in _stretches(corpus.train, most_tokens):
            counts += np.bincount(tokens, minlength=self.size)
            pairs = self._pair_codes(tokens, inner)
            codes, code_counts = _added(codes, code_counts, *np.unique(pairs, return_counts=True))
        self.unigram = self._plus_one(counts)
        self._fit_bigram(codes, code_counts)

    def score(self, batches: Iterable[Examples]) -> BaselineScores:
        """Both models on the masked tokens of these examples."""
        targets, lefts = (np.concatenate(parts) for parts in zip(*map(_targets, batches), strict=True))
        return BaselineScores(
            unigram_loss=float(-np.log(self.unigram[targets]).mean()),
            unigram_accuracy=float((targets == self.unigram.argmax()).mean()),
            bigram_loss=float(-np.log(self.bigram(lefts, targets)).mean()),
            bigram_accuracy=float((targets == self.best[lefts]).mean()),
            tokens=len(targets),
        )

    def losses(self, targets: Array, lefts: Array) -> dict[str, float]:
        """Mean losses of both models where the target is no special token, given the true token to its left."""
        text = self.hideable[targets]
        if not text.any():
            return {}
        targets, lefts = targets[text], lefts[text]
        return {
            "unigram_loss": float(-np.log(self.unigram[targets]).mean()),
            "bigram_loss": float(-np.log(self.bigram(lefts, targets)).mean()),
        }

    def bigram(self, lefts: Array, rights: Array) -> Array:
        """P(right | left) for each pair."""
        wanted = lefts * self.size + rights
        place = np.minimum(np.searchsorted(self.codes, wanted), len(self.codes) - 1)
        seen = np.where(self.codes[place] == wanted, self.seen[place], 0.0) if len(self.codes) else 0.0
        probabilities: Array = seen + self.rest[lefts] * self.lower[rights]
        return probabilities

    def _pair_codes(self, tokens: Array, inner: Array) -> Array:
        left, right = tokens[:-1], tokens[1:]
        codes: Array = (left * self.size + right)[inner & self.hideable[right]]
        return codes

    def _plus_one(self, counts: Array) -> Array:
        smooth = np.where(self.hideable, counts + 1, 0)
        probabilities: Array = smooth / smooth.sum()
        return probabilities

    def _fit_bigram(self, codes: Array, counts: Array) -> None:
        lefts, rights = codes // self.size, codes % self.size
        once, twice = np.count_nonzero(counts == 1), np.count_nonzero(counts == 2)
        discount = once / (once + 2 * twice) if once else 0.5
        totals = np.bincount(lefts, weights=counts, minlength=self.size)
        kinds = np.bincount(lefts, minlength=self.size)
        self.codes = codes
        self.seen = np.maximum(counts - discount, 0) / totals[lefts]
        # What the discount took away goes to the lower order: in how many contexts a token has been seen.
        self.rest = np.where(totals > 0, discount * kinds / np.maximum(totals, 1), 1.0)
        self.lower = self._plus_one(np.bincount(rights, minlength=self.size))
        self.best = self._best_guesses(lefts, rights)

    def _best_guesses(self, lefts: Array, rights: Array) -> Array:
        fallback = int(self.lower.argmax())
        best = np.full(self.size, fallback)
        chance = self.rest * self.lower[fallback]
        probabilities = self.seen + self.rest[lefts] * self.lower[rights]
        order = np.lexsort((probabilities, lefts))
        last = np.flatnonzero(np.diff(lefts[order], append=-1))
        winners = order[last]
        better = probabilities[winners] > chance[lefts[winners]]
        best[lefts[winners[better]]] = rights[winners[better]]
        return best


def _stretches(text: TokenText, most: int) -> Iterator[tuple[Array, Array]]:
    """The tokens shard by shard, and for each neighbouring pair whether it lies within one document."""
    for shard in text.shards:
        tokens = shard.arrays["tokens"][:most].astype(np.int64)
        if len(tokens) == 0:
            continue
        most -= len(tokens)
        inner = np.ones(len(tokens) - 1, bool)
        starts = shard.arrays["sentences"][shard.arrays["documents"]].astype(np.int64)
        inner[starts[(starts > 0) & (starts < len(tokens))] - 1] = False
        yield tokens, inner


def _added(codes: Array, counts: Array, more: Array, more_counts: Array) -> tuple[Array, Array]:
    merged, places = np.unique(np.concatenate([codes, more]), return_inverse=True)
    total = np.bincount(places, weights=np.concatenate([counts, more_counts]), minlength=len(merged))
    return merged, total.astype(np.int64)


def _targets(examples: Examples) -> tuple[Array, Array]:
    return examples.labels, examples.originals[examples.masked - 1]
