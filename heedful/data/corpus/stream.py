"""The documents of a corpus as one stream of tokens, each with what stands before and after a text."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from heedful.data.corpus.corpus import Corpus, TokenText
from heedful.data.corpus.reading import Part
from heedful.data.shards import Array
from heedful.text.ends import Ends


class TokenStream:
    """Documents one after the other: start symbol, tokens, end symbol; of GPT-2's tokenizer the end symbol alone.

    Only boundaries are in memory, and any stretch can be read.
    """

    def __init__(self, text: TokenText, ends: Ends) -> None:
        self.text, self.before, self.after = text, ends.before, (ends.end,)

    @classmethod
    def of(cls, corpus: Corpus, part: Part = "train") -> TokenStream:
        """That of a corpus, or of what it holds out."""
        return cls(corpus.train if part == "train" else corpus.held_out, Ends.of(corpus.tokenizer))

    def __len__(self) -> int:
        """How many tokens there are, ends included."""
        return self.text.tokens + self.text.documents * self._added

    @property
    def _added(self) -> int:
        return len(self.before) + len(self.after)

    @cached_property
    def _starts(self) -> Array:
        """Where each document begins in the stream, and last where the stream ends."""
        starts: Array = self.text.document_starts + np.arange(self.text.documents + 1) * self._added
        return starts

    def read(self, start: int, stop: int) -> Array:
        """The stretch start … stop."""
        found = np.empty(stop - start, np.int64)
        document = int(np.searchsorted(self._starts, start, side="right")) - 1
        place = start
        while place < stop:
            first, end = int(self._starts[document]), int(self._starts[document + 1])
            until = min(stop, end)
            found[place - start : until - start] = self._part(document, place - first, until - first)
            place, document = until, document + 1
        return found

    def _part(self, document: int, start: int, stop: int) -> Array:
        """Tokens start … stop of a document with its ends."""
        first, end = (int(self.text.document_starts[document + i]) for i in (0, 1))
        before, size = len(self.before), end - first
        low, high = max(start - before, 0), min(stop - before, size)
        inner = self.text.read("tokens", first + low, first + high) if low < high else np.empty(0, np.int64)
        left = self.before[start : min(stop, before)]
        right = self.after[max(start - before - size, 0) : max(stop - before - size, 0)]
        return np.concatenate([np.array(left, np.int64), inner.astype(np.int64), np.array(right, np.int64)])
