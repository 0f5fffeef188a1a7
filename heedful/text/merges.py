"""Learning which pieces to join: the byte-pair merges behind both BPE and WordPiece vocabularies.

The `tokenizers` library can train too, but numbers its first pieces in the order of a randomly seeded hash table and
breaks ties between equally frequent pairs by those numbers. Here the result depends on the counted words alone.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

Pair = tuple[int, int]


def learn_merges(
    words: Iterable[tuple[Sequence[int], int]],
    alphabet: Sequence[str],
    size: int,
    glue: Callable[[str, str], str],
    least_count: int = 2,
    on_piece: Callable[[int], None] = lambda _: None,
) -> tuple[list[str], list[tuple[str, str]]]:
    """Join the most frequent neighbours until there are `size` pieces; gives the pieces and the merges, in order.

    A word is its spelling in indices of `alphabet` and how often it occurs. Of equally frequent pairs the one of the
    older pieces, in the order of `alphabet`, is joined first.
    """
    pieces = list(alphabet)
    index = {piece: i for i, piece in enumerate(pieces)}
    table = _PairTable(words)
    merges = []
    while len(pieces) < size and (pair := table.pop_most_frequent(least_count)):
        left, right = pieces[pair[0]], pieces[pair[1]]
        joined = glue(left, right)
        # "abc" may come from ab+c and from a+bc: one piece, two merges.
        if joined not in index:
            index[joined] = len(pieces)
            pieces.append(joined)
        table.merge(pair, index[joined])
        merges.append((left, right))
        on_piece(len(pieces))
    return pieces, merges


class _PairTable:
    """Neighbouring pieces in a list of words, counted, and kept up to date while they are merged."""

    def __init__(self, words: Iterable[tuple[Sequence[int], int]]) -> None:
        self.spellings: list[list[int]] = []
        self.word_counts: list[int] = []
        self.counts: dict[Pair, int] = defaultdict(int)
        # Words where the pair was seen; may name a word twice, or one where it no longer is.
        self.places: dict[Pair, list[int]] = defaultdict(list)
        for number, (spelling, count) in enumerate(words):
            self.spellings.append(list(spelling))
            self.word_counts.append(count)
            for pair in pairwise(spelling):
                self.counts[pair] += count
                self.places[pair].append(number)
        # Holds for each pair at least one entry that is not lower than its count.
        self.queue = [(-count, pair) for pair, count in self.counts.items()]
        heapq.heapify(self.queue)

    def pop_most_frequent(self, least_count: int) -> Pair | None:
        while self.queue:
            negative, pair = self.queue[0]
            count = self.counts.get(pair, 0)
            if count < -negative and count >= least_count:
                heapq.heapreplace(self.queue, (-count, pair))
                continue
            heapq.heappop(self.queue)
            if count == -negative >= least_count:
                return pair
        return None

    def merge(self, pair: Pair, joined: int) -> None:
        changes: dict[Pair, int] = defaultdict(int)
        for number in self.places.pop(pair):
            self._merge_in_word(number, pair, joined, changes)
        del self.counts[pair]
        changes.pop(pair, None)
        for changed, difference in changes.items():
            count = self.counts[changed] = self.counts[changed] + difference
            if difference > 0:
                heapq.heappush(self.queue, (-count, changed))
            elif not count:
                del self.counts[changed], self.places[changed]

    def _merge_in_word(self, number: int, pair: Pair, joined: int, changes: dict[Pair, int]) -> None:
        spelling, count = self.spellings[number], self.word_counts[number]
        first, second = pair
        position, last = 0, len(spelling) - 1
        while position < last:
            if spelling[position] == first and spelling[position + 1] == second:
                if position > 0:
                    before = spelling[position - 1]
                    changes[before, first] -= count
                    changes[before, joined] += count
                    self.places[before, joined].append(number)
                if position + 1 < last:
                    after = spelling[position + 2]
                    changes[second, after] -= count
                    changes[joined, after] += count
                    self.places[joined, after].append(number)
                spelling[position : position + 2] = [joined]
                last -= 1
            position += 1
