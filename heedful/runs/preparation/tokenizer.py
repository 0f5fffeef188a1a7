"""A tokenizer of one's own from files of text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack

from heedful.atomic import atomic_folder
from heedful.data.text_files import read_documents
from heedful.inference.bars import Bar, no_bar
from heedful.runs.preparation.settings import TokenizerSettings
from heedful.text import tokenizer_training
from heedful.text.encodings import reading_as
from heedful.text.tokenizer import Tokenizer

# A bar need not hear of every line.
LINES_AT_ONCE = 1000


def train_tokenizer(settings: TokenizerSettings, bar: Bar = no_bar) -> Tokenizer:
    """Learn a vocabulary and write its files."""
    # The folder first: a name that is taken is found out before the work and not after it.
    with atomic_folder(settings.output, settings.overwrite) as folder, ExitStack() as later:
        later.enter_context(reading_as(settings.encoding))
        advance: list[Callable[[int, int], None]] = []  # of the second bar, which begins where the first one ends

        def tell(pieces: int) -> None:
            if not advance:
                advance.append(later.enter_context(bar("learning", settings.vocab_size, "pieces")))
            advance[0](pieces, pieces)

        tokenizer = tokenizer_training.train(
            watched(lines_of(settings.files, settings.text), bar),
            settings.kind,
            settings.vocab_size,
            cased=settings.cased,
            alphabet_size=settings.alphabet,
            on_piece=tell,
        )
        tokenizer.model_max_length = settings.max_length
        tokenizer.save(folder)
    return tokenizer


def lines_of(files: Iterable[str], column: str | None) -> Iterator[str]:
    """The lines of all documents."""
    for file in files:
        for document in read_documents(file, column):
            yield from document


def watched(lines: Iterable[str], bar: Bar) -> Iterator[str]:
    """The same lines, and a bar until the last of them."""
    with bar("reading", None, "lines") as advance:
        for number, line in enumerate(lines, start=1):
            yield line
            if number % LINES_AT_ONCE == 0:
                advance(number, number)
