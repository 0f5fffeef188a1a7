"""From the text of a unit to the arrays of its shard.

tokens     the ids of all its documents, one after the other, as narrow as the vocabulary allows
sentences  where each sentence starts in `tokens`
documents  which sentence each document starts with
bounds     only if words or phrases were asked for, a byte a token: bit 0, a word starts here; bit 1, a phrase or
           else a word starts here
words …    only if words were asked for: every word as it is written, see `heedful.data.corpus.whole_words`
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from heedful.data.corpus.encoder import SentenceEncoder, word_starts
from heedful.data.corpus.lexicon import Lexicon
from heedful.data.corpus.reading import Layout
from heedful.data.corpus.whole_words import WordLister
from heedful.data.shards import Array
from heedful.text.sentences import split_sentences
from heedful.text.tokenizer import Tokenizer
from heedful.text.words import needs_segmenter, split_words, words

WORD, PHRASE = 1, 2
Spans = Sequence[tuple[int, int]]

_CHINESE = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_LONGEST_HEADING = 60
_LONGEST_CHINESE_HEADING = 12
_SENTENCES_AT_ONCE = 2000


@dataclass(frozen=True)
class TokenSettings:
    """What is asked of a corpus besides its text and tokenizer; the shards depend on nothing else."""

    layout: Layout = "paragraphs"
    drop_headings: bool = False
    words: bool = False
    lexicon: tuple[str, ...] = ()


class UnitTokeniser:
    """Makes the arrays and facts of one shard after another."""

    def __init__(self, tokenizer: Tokenizer, settings: TokenSettings) -> None:
        self.settings = settings
        self.library = tokenizer.library
        self.unknown = tokenizer.unk_id
        self.encoder = SentenceEncoder(tokenizer, settings.words or bool(settings.lexicon))
        self.lexicon = Lexicon(settings.lexicon, tokenizer) if settings.lexicon else None

    def __call__(self, text: bytes) -> tuple[dict[str, Array], dict[str, Any]]:
        """The arrays and the counts of a unit's text in UTF-8, which has a blank line between documents."""
        tokens: list[Array] = []
        bounds: list[Array] = []
        lengths: list[Array] = []
        owners: list[Array] = []
        lister = WordLister()
        numbered = self._numbered_sentences(text)
        while some := list(islice(numbered, _SENTENCES_AT_ONCE)):
            sentences = [sentence for _, sentence in some]
            ids, starts, counts = self.encoder.encode(sentences)
            tokens.append(ids)
            lengths.append(counts)
            owners.append(np.array([document for document, _ in some], np.int64))
            spans = {i: words(sentences[i]) for i in self._chinese(sentences)}
            if self.settings.words:
                # A sentence of which the tokenizer leaves nothing has no words either: both count the same sentences.
                read = [i for i, count in enumerate(counts.tolist()) if count]
                lister.add([_words_of(sentences[i], spans.get(i)) for i in read])
            if self.settings.words or self.lexicon:
                bounds.append(self._bounds(sentences, spans, ids, starts, counts))
        arrays, facts = self._laid_out(tokens, bounds, lengths, owners)
        if self.settings.words:
            arrays.update(lister.arrays())
            facts["words"] = len(arrays["words"])
        return arrays, facts

    def _numbered_sentences(self, text: bytes) -> Iterator[tuple[int, str]]:
        for number, document in enumerate(text.split(b"\n\n")):
            for line in document.decode().split("\n"):
                for sentence in self._sentences(line):
                    yield number, sentence

    def _sentences(self, line: str) -> Sequence[str]:
        if self.settings.layout == "sentences":
            return [line]
        sentences = split_sentences(line)
        return [] if self.settings.drop_headings and is_heading(line, len(sentences)) else sentences

    def _chinese(self, sentences: Sequence[str]) -> list[int]:
        """The sentences whose words the segmenter finds, which takes long enough to be done once."""
        return [i for i, sentence in enumerate(sentences) if self.settings.words and needs_segmenter(sentence)]

    def _bounds(
        self, sentences: Sequence[str], spans: Mapping[int, Spans], ids: Array, starts: Array, lengths: Array
    ) -> Array:
        firsts = np.cumsum(lengths) - lengths
        units = starts.copy()
        encodings = self.library.encode_batch([sentences[i] for i in spans], add_special_tokens=False)
        for i, encoding in zip(spans, encodings, strict=True):
            units[firsts[i] : firsts[i] + lengths[i]] = chinese_word_starts(sentences[i], spans[i], encoding)
        phrases = units
        if self.lexicon:
            phrases = self.lexicon.phrase_starts(ids, units, starts, firsts)
        flags: Array = (units * WORD | phrases * PHRASE).astype(np.uint8)
        return flags

    def _laid_out(
        self, tokens: list[Array], bounds: list[Array], lengths: list[Array], owners: list[Array]
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        counts = np.concatenate([np.empty(0, np.int64), *lengths])
        # A sentence of nothing but signs that the tokenizer drops is none, and so is a document of such.
        owner = np.concatenate([np.empty(0, np.int64), *owners])[counts > 0]
        counts = counts[counts > 0]
        first_of_document = np.flatnonzero(np.diff(owner, prepend=-1))
        arrays = {
            "tokens": np.concatenate([np.empty(0, self.encoder.dtype), *tokens]),
            "sentences": (np.cumsum(counts) - counts).astype(np.uint32),
            "documents": first_of_document.astype(np.uint32),
        }
        if bounds:
            arrays["bounds"] = np.concatenate(bounds)
        facts = {name: len(arrays[name]) for name in ("documents", "sentences", "tokens")}
        return arrays, {**facts, "unknown": int(np.count_nonzero(arrays["tokens"] == self.unknown))}


def _words_of(sentence: str, spans: Spans | None) -> list[str]:
    return split_words(sentence) if spans is None else [sentence[start:end] for start, end in spans]


def is_heading(line: str, sentences: int) -> bool:
    """Whether a line looks like a bare section heading: short, one sentence, nothing that structures a sentence.

    English: at most six words and 60 characters, no comma, colon, semicolon, question or exclamation mark. Chinese: at
    most 12 characters and no 。 at the end. Lists of names and very short sentences go with the headings.
    """
    if sentences != 1 or len(line) > _LONGEST_HEADING or re.search("[,;:!?，、；：！？。]", line):
        return False
    if _CHINESE.search(line):
        return len(line.rstrip(".")) <= _LONGEST_CHINESE_HEADING
    return len(line.split()) <= 6


def chinese_word_starts(sentence: str, spans: Spans, encoding: Any) -> Array:
    """The flags of a sentence with these words, in which the ideographs of one Chinese word count as one word."""
    inside = np.zeros(len(sentence) + 1, bool)
    for start, end in spans:
        if _CHINESE.match(sentence[start]):
            inside[start + 1 : end] = True
    places = np.array([start for start, _ in encoding.offsets], np.int64)
    starts: Array = word_starts(encoding.word_ids) & ~inside[places]
    return starts
