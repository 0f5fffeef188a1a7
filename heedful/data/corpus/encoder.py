"""Sentences to token ids, fast: with BERT's pipeline every distinct word is tokenised once.

BERT cuts at spaces and around ideographs and signs before it looks for pieces, so those of a sentence are those of its
chunks, one after the other. Other pipelines are given whole sentences.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import chain

import numpy as np
from tokenizers import Encoding

from heedful.data.shards import Array
from heedful.text.tokenizer import Tokenizer

# The ideographs that the `tokenizers` library sets apart; unlike Google's script it leaves out U+2B820 … U+2B91F.
SET_APART = (
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b81f"
    "\U0002b920-\U0002ceaf\U0002f800-\U0002fa1f"
)
# ASCII signs, each of which BERT sets apart too.
_SIGNS = r"!-/:-@\[-`{-~"
# Enough for the words that return; more would make memory grow with the corpus.
MOST_CHUNKS = 50_000
_BATCH = 1000


class SentenceEncoder:
    """Token ids, and where words start, of many sentences; the memory it needs does not grow with them."""

    def __init__(self, tokenizer: Tokenizer, words: bool = False) -> None:
        self.library = tokenizer.library
        self.words = words
        self.dtype = np.dtype(np.uint16 if tokenizer.vocab_size <= 1 << 16 else np.uint32)
        self._chunks = _chunk_pattern(tokenizer)
        # A chunk's ids, and a byte for each of them: 1 where a word starts.
        self._ids: dict[str, bytes] = {}
        self._flags: dict[str, bytes] = {}

    def encode(self, sentences: Sequence[str]) -> tuple[Array, Array, Array]:
        """The ids of all sentences in one array, a flag for each that starts a word, and the sentences' lengths.

        Without `words` there are no flags.
        """
        if self._chunks is None:
            return self._whole(sentences)
        chunks = [self._chunks.findall(sentence) for sentence in sentences]
        self._learn(set(chain.from_iterable(chunks)))
        ids = [b"".join(map(self._ids.__getitem__, row)) for row in chunks]
        flags = b"".join(map(self._flags.__getitem__, chain.from_iterable(chunks))) if self.words else b""
        lengths = np.fromiter(map(len, ids), np.int64, len(ids)) // self.dtype.itemsize
        if len(self._ids) > MOST_CHUNKS:
            self._ids.clear()
            self._flags.clear()
        return np.frombuffer(b"".join(ids), self.dtype), np.frombuffer(flags, np.uint8), lengths

    def _learn(self, chunks: set[str]) -> None:
        missing = sorted(chunks - self._ids.keys())
        for start in range(0, len(missing), _BATCH):
            some = missing[start : start + _BATCH]
            ids, flags, lengths = self._whole(some)
            ends = np.cumsum(lengths)
            for chunk, end, length in zip(some, ends.tolist(), lengths.tolist(), strict=True):
                self._ids[chunk] = ids[end - length : end].tobytes()
                if self.words:
                    self._flags[chunk] = flags[end - length : end].tobytes()

    def _whole(self, sentences: Sequence[str]) -> tuple[Array, Array, Array]:
        parts = [self._batch(sentences[start : start + _BATCH]) for start in range(0, len(sentences), _BATCH)]
        ids, flags, lengths = (np.concatenate(arrays) for arrays in zip(*parts or [self._batch([])], strict=True))
        return ids, flags, lengths

    def _batch(self, sentences: Sequence[str]) -> tuple[Array, Array, Array]:
        # The fast way leaves out the numbers of words.
        encode = self.library.encode_batch if self.words else self.library.encode_batch_fast
        encodings = encode(list(sentences), add_special_tokens=False)
        lengths = np.fromiter(map(len, encodings), np.int64, len(encodings))
        ids = np.fromiter(chain.from_iterable(encoding.ids for encoding in encodings), self.dtype, lengths.sum())
        return ids, self._starts(encodings, lengths), lengths

    def _starts(self, encodings: Sequence[Encoding], lengths: Array) -> Array:
        if not self.words:
            return np.empty(0, np.uint8)
        flags = word_starts(list(chain.from_iterable(encoding.word_ids for encoding in encodings)))
        firsts = np.cumsum(lengths) - lengths
        flags[firsts[lengths > 0]] = 1
        return flags


def word_starts(word_ids: Sequence[int | None]) -> Array:
    """A flag for each token that starts a word; a special token in the text (None) is a word of its own."""
    numbers = np.array([-1 if word is None else word for word in word_ids], np.int64)
    starts = np.ones(len(numbers), np.uint8)
    starts[1:] = (numbers[1:] != numbers[:-1]) | (numbers[1:] < 0)
    return starts


def _chunk_pattern(tokenizer: Tokenizer) -> re.Pattern[str] | None:
    """What to cut a sentence into if the tokenizer is BERT's: its special tokens, ideographs, signs, and other runs."""
    settings = json.loads(tokenizer.library.to_str())
    normalizer, pre_tokenizer = settings["normalizer"] or {}, settings["pre_tokenizer"] or {}
    if normalizer.get("type") != "BertNormalizer" or pre_tokenizer.get("type") != "BertPreTokenizer":
        return None
    apart = SET_APART if normalizer["handle_chinese_chars"] else ""
    added = sorted((token["content"] for token in settings["added_tokens"]), key=len, reverse=True)
    if not all(re.fullmatch(rf"[{_SIGNS}][^\s{SET_APART}]*", token) for token in added):
        return None  # it could begin within a chunk
    single = f"[{apart}{_SIGNS}]"
    return re.compile("|".join([rf"[^ {apart}{_SIGNS}]+", *map(re.escape, added), single]))
