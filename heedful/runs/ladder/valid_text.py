"""The text that perplexities and speed are measured on, the same for all models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.whole_words import WholeWords
from heedful.data.text_files import read_texts
from heedful.errors import HeedfulError
from heedful.runs.settings import Place

MOST_WORDS = 250_000
SHORT = 25  # words of a text for embedding, about a sentence
LONG_WORD = 8  # letters; text without spaces is measured by them


def valid_texts(corpus: Corpus, file: Place | None) -> list[str]:
    """The held-out text: the lines of a file, or the documents of the corpus's own held-out part."""
    texts = _documents(corpus) if file is None else (text for text in read_texts(file) if text.strip())
    found = list(first_words(texts, MOST_WORDS))
    if not found:
        where = corpus.folder if file is None else file
        raise HeedfulError("there is no held-out text", where=where, remedy="give a text as `valid`")
    return found


def first_words(texts: Iterable[str], words: int) -> Iterator[str]:
    """The first texts, until they have so many words together."""
    for text in texts:
        yield text
        words -= _size(text)
        if words <= 0:
            return


def sample_of(texts: Sequence[str], words: int) -> list[str]:
    """Texts from all over, of about so many words together."""
    stride = max(1, sum(map(_size, texts)) // words)
    return list(texts[::stride])


def cut_short(texts: Iterable[str]) -> Iterator[str]:
    """The texts in pieces of a few words."""
    for text in texts:
        words = text.split()
        yield from (" ".join(words[start : start + SHORT]) for start in range(0, len(words), SHORT))


def _documents(corpus: Corpus) -> Iterator[str]:
    words, before = WholeWords(corpus, "held_out"), 0
    for shard in words.shards:
        sentences = len(shard.arrays["word_sentences"])
        for start, stop in pairwise([*shard.arrays["documents"].tolist(), sentences]):
            yield " ".join(word for number in range(start, stop) for word in words.sentence(before + number))
        before += sentences


def _size(text: str) -> int:
    return max(len(text.split()), len(text) // LONG_WORD)
