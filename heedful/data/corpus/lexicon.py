"""Phrases and names of a lexicon, found in token ids: ERNIE hides them whole."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from heedful.data.shards import Array
from heedful.errors import HeedfulError
from heedful.text.documents import read_lines
from heedful.text.tokenizer import Tokenizer


def read_lexicon(path: str | Path) -> tuple[str, ...]:
    """The phrases of a file, one a line (what follows a tab is ignored), each once, in order of their spelling."""
    phrases = {line.split("\t")[0].strip() for line in read_lines(path)} - {""}
    if not phrases:
        raise HeedfulError("no phrases in this lexicon", where=path, remedy="write one phrase a line")
    return tuple(sorted(phrases))


class Lexicon:
    """Finds the phrases of a lexicon in token ids: from left to right, the longest first, only whole words."""

    def __init__(self, phrases: Iterable[str], tokenizer: Tokenizer) -> None:
        self._by_first: dict[int, dict[int, set[tuple[int, ...]]]] = defaultdict(lambda: defaultdict(set))
        self._first = np.zeros(tokenizer.vocab_size, bool)
        for encoding in tokenizer.library.encode_batch_fast(list(phrases), add_special_tokens=False):
            ids = tuple(encoding.ids)
            if len(ids) > 1 and tokenizer.unk_id not in ids:
                self._by_first[ids[0]][len(ids)].add(ids)
                self._first[ids[0]] = True

    def phrase_starts(self, ids: Array, units: Array, words: Array, sentences: Array) -> Array:
        """The flags `units` with each phrase made one unit; it begins and ends where `words` do, in one sentence."""
        result = units.copy()
        closed = np.ones(len(ids) + 1, bool)
        closed[:-1] = words
        fence = np.append(sentences, len(ids))
        places = np.flatnonzero(self._first[ids] & words.astype(bool))
        limits = fence[np.searchsorted(fence, places, side="right")]
        reached = 0
        for place, limit in zip(places.tolist(), limits.tolist(), strict=True):
            if place < reached:
                continue
            end = self._match(ids, place, limit, closed)
            if end > place:
                result[place] = 1
                result[place + 1 : end] = 0
                result[end : end + 1] = 1
                reached = end
        return result

    def _match(self, ids: Array, place: int, limit: int, closed: Array) -> int:
        lengths = self._by_first[int(ids[place])]
        for length in sorted(lengths, reverse=True):
            end = place + length
            if end <= limit and closed[end] and tuple(ids[place:end].tolist()) in lengths[length]:
                return end
        return place
