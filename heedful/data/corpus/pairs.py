"""Which runs of sentences make up an example: next sentence, sentence order, or a single run.

Everything is computed for many examples at once, and each choice hangs on the seed and the example's number alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from heedful.data.chance import below, shuffled, uniform
from heedful.data.corpus.corpus import TokenText
from heedful.data.corpus.segments import Segments, cut_segments
from heedful.data.shards import Array
from heedful.errors import HeedfulError

Pairs = Literal["nsp", "sop", "none"]
PAIRS: tuple[Pairs, ...] = ("nsp", "sop", "none")

# What a random number is for.
_ORDER, _SHORT, _SHORT_LENGTH, _SPLIT, _LABEL, _OTHER = range(10, 16)
_NO_TOKENS = 1 << 40


@dataclass(frozen=True)
class Runs:
    """Token ranges of the two sides of each example and, unless there is one side only, 1 where B is not next."""

    a_starts: Array
    a_stops: Array
    b_starts: Array
    b_stops: Array
    labels: Array | None

    @property
    def lengths(self) -> tuple[Array, Array]:
        """The number of tokens on each side."""
        return self.a_stops - self.a_starts, self.b_stops - self.b_starts


class PairChooser:
    """Turns example numbers into runs of sentences; `room` is what both sides may have in tokens."""

    def __init__(
        self, text: TokenText, kind: Pairs, room: int, seed: int, shorter: float = 0.1, single_sentences: bool = False
    ) -> None:
        self.text, self.kind, self.room, self.seed, self.shorter = text, kind, room, seed, shorter
        self.single = single_sentences
        count = None if not single_sentences else (1 if kind == "none" else 2)
        self.segments = cut_segments(text, room, least=1 if kind == "none" else 2, sentences=count)
        _check_enough(self.segments, kind)

    def __len__(self) -> int:
        """How many examples there are before the text repeats itself in another order."""
        return len(self.segments)

    def choose(self, numbers: Array) -> Runs:
        """The runs of the examples `numbers`; every len(self) numbers the text begins again, shuffled anew."""
        size = len(self.segments)
        segments = shuffled(numbers % size, size, self.seed, _ORDER, numbers // size)
        starts = self.segments.starts[segments]
        stops = self._shortened(numbers, starts, self.segments.stops[segments])
        if self.kind == "none":
            stops = np.minimum(stops, starts + self.room)
            return Runs(starts, stops, stops, stops, None)
        middles = self._split(numbers, starts, stops)
        labels = below(2, self.seed, _LABEL, numbers)
        if self.kind == "sop":
            return self._swapped(starts, middles, stops, labels)
        b_starts, b_stops = self._from_elsewhere(numbers, segments, middles - starts, stops - middles)
        b_starts, b_stops = np.where(labels, b_starts, middles), np.where(labels, b_stops, stops)
        return self._cut(Runs(starts, middles, b_starts, b_stops, labels))

    def _shortened(self, numbers: Array, starts: Array, stops: Array) -> Array:
        """Some examples end earlier: after a random number of tokens, or the last sentence that ends before that."""
        targets = starts + 2 + below(self.room - 1, self.seed, _SHORT_LENGTH, numbers)
        boundaries = self.text.sentence_starts
        last = boundaries[np.searchsorted(boundaries, targets, side="right") - 1]
        ends = np.minimum(np.where(last > starts + 1, last, targets), stops)
        return np.where(uniform(self.seed, _SHORT, numbers) < self.shorter, ends, stops)

    def _split(self, numbers: Array, starts: Array, stops: Array) -> Array:
        """The start of a random sentence but the first; the middle where there is one sentence only."""
        boundaries = self.text.sentence_starts
        first = np.searchsorted(boundaries, starts, side="right")
        inside = np.searchsorted(boundaries, stops) - first
        choice = first + below(np.maximum(inside, 1), self.seed, _SPLIT, numbers)
        return np.where(inside > 0, boundaries[np.minimum(choice, len(boundaries) - 1)], (starts + stops) // 2)

    def _from_elsewhere(self, numbers: Array, segments: Array, used: Array, wanted: Array) -> tuple[Array, Array]:
        """A run of another document, about as long as the true next one.

        It starts where the second half of a random segment would, and ends with the sentence that brings it nearest to
        the length of the true one: neither its place in the document nor its length gives it away.
        """
        document = self.segments.documents[segments]
        own, end = self.segments.of_document[document], self.segments.of_document[document + 1]
        other = below(len(self.segments) - (end - own), self.seed, _OTHER, numbers)
        other += np.where(other >= own, end - own, 0)
        stops = self.segments.stops[other]
        starts = self._split(numbers, self.segments.starts[other], stops)
        if self.single:
            return starts, stops
        limits = self.text.document_starts[self.segments.documents[other] + 1]
        return starts, self._nearest(starts, wanted, np.minimum(limits, starts + self.room - used))

    def _nearest(self, starts: Array, wanted: Array, limits: Array) -> Array:
        """The end of a sentence nearest to `wanted` tokens after each start, or else the limit."""
        boundaries = self.text.sentence_starts
        after = np.searchsorted(boundaries, starts + wanted)
        candidates = np.stack([boundaries[after - 1], boundaries[np.minimum(after, len(boundaries) - 1)]])
        allowed = (candidates > starts) & (candidates <= limits)
        distance = np.where(allowed, np.abs(candidates - starts - wanted), _NO_TOKENS)
        nearest = np.take_along_axis(candidates, distance.argmin(axis=0)[None], axis=0)[0]
        ends: Array = np.where(allowed.any(axis=0), nearest, np.minimum(limits, starts + wanted))
        return ends

    def _swapped(self, starts: Array, middles: Array, stops: Array, labels: Array) -> Runs:
        first = np.where(labels, middles, starts), np.where(labels, stops, middles)
        second = np.where(labels, starts, middles), np.where(labels, middles, stops)
        return self._cut(Runs(*first, *second, labels))

    def _cut(self, runs: Runs) -> Runs:
        """Cut what is too long from the right of the longer side until both fit."""
        a, b = runs.lengths
        half = self.room // 2
        over = a + b > self.room
        kept_a = np.where(over, np.where(b < half, self.room - b, np.minimum(a, self.room - half)), a)
        kept_b = np.where(over, self.room - kept_a, b)
        return Runs(runs.a_starts, runs.a_starts + kept_a, runs.b_starts, runs.b_starts + kept_b, runs.labels)


def _check_enough(segments: Segments, kind: Pairs) -> None:
    if len(segments) == 0:
        raise HeedfulError("this part of the corpus has no text", remedy="build the corpus from more documents")
    if kind == "nsp" and segments.documents[0] == segments.documents[-1]:
        raise HeedfulError(
            "next sentence prediction needs two documents, this part of the corpus has one",
            remedy="build the corpus from more documents, hold more of them out, or use none for `pairs`",
        )
