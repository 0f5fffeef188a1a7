"""The text that perplexities are taken of, the same for all models: whole sentences, as many as fill a stretch.

A stretch has half as many words as the examples of training have tokens, so that no model is asked about a place that
it has never seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.whole_words import WholeWords
from heedful.data.text_files import read_texts
from heedful.errors import HeedfulError
from heedful.runs.settings import Place
from heedful.text.sentences import split_sentences

TOKENS_A_WORD = 2  # at most, nearly always
MOST_WORDS = 250_000
LONG_WORD = 8  # letters; text without spaces is measured by them


def valid_stretches(corpus: Corpus, file: Place | None, length: int) -> list[str]:
    """The held-out text, of a file or of the corpus itself, in stretches for models trained on this many tokens."""
    sentences = _of_corpus(corpus) if file is None else _of_file(file)
    found = list(first_words(_filled(sentences, length // TOKENS_A_WORD), MOST_WORDS))
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


def _of_file(file: Place) -> Iterator[str]:
    for text in read_texts(file):
        yield from split_sentences(text)
        yield ""


def _of_corpus(corpus: Corpus) -> Iterator[str]:
    words = WholeWords(corpus, "held_out")
    return (" ".join(words.sentence(number)) for number in range(words.sentences))


def _filled(sentences: Iterable[str], room: int) -> Iterator[str]:
    """Sentences joined as far as there is room for words; an empty one ends a stretch."""
    parts: list[str] = []
    for sentence in sentences:
        if parts and (not sentence or sum(map(_size, parts)) + _size(sentence) > room):
            yield " ".join(parts)
            parts = []
        parts += [sentence] if sentence else []
    if parts:
        yield " ".join(parts)


def _size(text: str) -> int:
    return max(len(text.split()), len(text) // LONG_WORD)
