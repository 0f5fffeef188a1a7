"""A corpus to pretrain on from files of text."""

from __future__ import annotations

from heedful.data.corpus import build
from heedful.data.corpus.build import BuildProgress, ReadingSettings
from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.examples import Recipe
from heedful.data.corpus.lexicon import read_lexicon
from heedful.data.corpus.tokens import TokenSettings
from heedful.data.corpus.written import write_examples
from heedful.inference.bars import Bar, no_bar
from heedful.runs.preparation.settings import CorpusSettings
from heedful.text.encodings import reading_as
from heedful.text.tokenizer import Tokenizer


def build_corpus(settings: CorpusSettings, bar: Bar = no_bar) -> Corpus:
    """Turn text into token shards, and into examples written ahead if that is asked for."""
    share = 0.0 if settings.held_out_file else settings.held_out
    lexicon = read_lexicon(settings.lexicon) if settings.lexicon else ()
    with reading_as(settings.encoding), bar("building", None, "MB") as advance:

        def tell(done: BuildProgress) -> None:
            megabytes = done.bytes // 1_000_000
            advance(megabytes, megabytes)

        corpus = build.build_corpus(
            settings.files,
            settings.output,
            Tokenizer.load(settings.tokenizer),
            TokenSettings(settings.lines, settings.drop_headings, settings.words, lexicon),
            ReadingSettings(settings.text, settings.deduplicate, share, settings.held_out_file),
            settings.workers,
            tell,
            settings.overwrite,
        )
    if settings.static:
        _write_examples(corpus, settings, bar)
    return corpus


def recipe_of(settings: CorpusSettings) -> Recipe:
    """How the examples that are written ahead are made."""
    return Recipe(max_length=settings.length, pairs=settings.pairs, masking=settings.masking, seed=settings.seed)


def _write_examples(corpus: Corpus, settings: CorpusSettings, bar: Bar) -> None:
    with bar("writing", None, "examples") as advance:
        total = 0
        for count in write_examples(corpus.folder, recipe_of(settings), settings.duplicates, settings.workers):
            total += count
            advance(total, total)
