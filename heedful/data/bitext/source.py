"""The sentence pairs of each training step: alike in length, a function of the seed and the step's number alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np

from heedful.data.batching import cut_by_tokens, cut_in_order, without_small_tail
from heedful.data.bitext.pairs import EncodedPairs, bitext_of
from heedful.data.epochs import Epochs
from heedful.data.shards import Array
from heedful.schema import Bitext

TRANSLATION = "translation"
# So many batches' worth of pairs are sorted together: enough for like lengths, and still chance who meets whom.
WINDOW = 64


@dataclass(frozen=True)
class BitextMicroBatch:
    """A micro-batch of pairs, and the step it belongs to, counted from 0."""

    bitext: Bitext
    step: int = 0

    @property
    def counts(self) -> Mapping[str, int]:
        """How many symbols the decoder is to say."""
        return {TRANSLATION: len(self.bitext.labels)}

    @property
    def tokens(self) -> int:
        """The tokens that encoder and decoder see."""
        return len(self.bitext.source.ids) + len(self.bitext.target.ids)

    @property
    def padding(self) -> int:
        """The tokens that padded batches of both sides would add."""
        sides = (self.bitext.source.lengths, self.bitext.target.lengths)
        return sum(max(lengths) * len(lengths) - sum(lengths) for lengths in sides)

    def to(self, device: str) -> BitextMicroBatch:
        """The same on another device."""
        return BitextMicroBatch(self.bitext.to(device), self.step)


class BitextSource:
    """Training batches of about `batch_size` tokens of both sides, epoch after epoch without end."""

    def __init__(self, pairs: EncodedPairs, batch_size: int, seed: int) -> None:
        self.pairs, self.batch_size, self.seed = pairs, batch_size, seed
        self.epochs = Epochs(self._dealt)

    def steps_in(self, epochs: float) -> int:
        """How many steps so many epochs take, and at least one."""
        return self.epochs.steps_in(epochs)

    def step(self, number: int, rank: int = 0, world: int = 1, accumulate: int = 1) -> list[BitextMicroBatch]:
        """The micro-batches of a step for one of `world` processes; together they are always the same pairs."""
        shares = self.epochs.shares(number, rank, world, accumulate)
        return [BitextMicroBatch(bitext_of(self.pairs, share), number) for share in shares]

    @cached_property
    def fingerprint(self) -> str:
        """What tells these pairs from any others."""
        digest = blake2b(digest_size=16)
        for side in (self.pairs.source, self.pairs.target):
            digest.update(side.starts.tobytes())
            digest.update(side.ids.tobytes())
        return digest.hexdigest()

    def check(self, world: int, steps: int) -> None:
        """Refuse, before training, a number of processes that is too great for a batch of the first epoch."""
        self.epochs.check(world, steps)

    def _dealt(self, epoch: int) -> list[list[int]]:
        rng = np.random.default_rng([self.seed, epoch])
        order = self._sorted_in_windows(rng.permutation(len(self.pairs)))
        batches = without_small_tail(cut_in_order(order.tolist(), self.pairs.tokens.tolist(), self.batch_size))
        return [batches[i] for i in rng.permutation(len(batches)).tolist()]

    def _sorted_in_windows(self, order: Array) -> Array:
        """Window after window by length, up and down in turn, so that neighbours are alike across windows too."""
        source, target = self.pairs.source.lengths, self.pairs.target.lengths
        windows = max(1, round(int(self.pairs.tokens.sum()) / (WINDOW * self.batch_size)))
        parts = [part[np.lexsort((target[part], source[part]))] for part in np.array_split(order, windows)]
        return np.concatenate([part if number % 2 else part[::-1] for number, part in enumerate(parts)])


def micro_batches_of(pairs: EncodedPairs, batch_size: int) -> Iterator[BitextMicroBatch]:
    """All pairs once, in batches of about `batch_size` tokens, the same every time."""
    for numbers in cut_by_tokens(pairs.tokens.tolist(), batch_size):
        yield BitextMicroBatch(bitext_of(pairs, numbers))
