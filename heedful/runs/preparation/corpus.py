"""A corpus to pretrain on from files of text."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from heedful.addresses import Address, place, working_copy
from heedful.data.corpus import build
from heedful.data.corpus.build import BuildProgress, ReadingSettings
from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.examples import Recipe
from heedful.data.corpus.lexicon import read_lexicon
from heedful.data.corpus.tokens import TokenSettings
from heedful.data.corpus.written import write_examples
from heedful.data.processes import Workers
from heedful.data.ray_engine import ray_engine
from heedful.errors import HeedfulError
from heedful.inference.bars import Bar, no_bar
from heedful.runs.preparation.settings import CorpusSettings
from heedful.text.encodings import reading_as
from heedful.text.tokenizer import Tokenizer


def build_corpus(settings: CorpusSettings, bar: Bar = no_bar) -> Corpus:
    """Turn text into token shards, and into examples written ahead if that is asked for."""
    with workers_of(settings) as workers:
        corpus = _built(settings, workers, bar)
        if settings.static:
            _write_examples(corpus, settings, workers, bar)
    return corpus


def workers_of(settings: CorpusSettings) -> AbstractContextManager[Workers]:
    """Processes of this machine, or those of a cluster, which is asked before anything is written."""
    return ray_engine(settings.ray) if settings.ray else nullcontext(settings.workers)


def _built(settings: CorpusSettings, workers: Workers, bar: Bar) -> Corpus:
    share = 0.0 if settings.held_out_file else settings.held_out
    lexicon = read_lexicon(settings.lexicon) if settings.lexicon else ()
    with reading_as(settings.encoding), bar("building", None, "MB") as advance:

        def tell(done: BuildProgress) -> None:
            megabytes = done.bytes // 1_000_000
            advance(megabytes, megabytes)

        return build.build_corpus(
            settings.files,
            settings.output,
            _tokenizer(settings.tokenizer),
            TokenSettings(settings.lines, settings.drop_headings, settings.words, lexicon),
            ReadingSettings(settings.text, settings.deduplicate, share, settings.held_out_file),
            workers,
            tell,
            settings.overwrite,
        )


def _tokenizer(named: str | Path) -> Tokenizer:
    where = place(named)
    if isinstance(where, Address) and not where.exists():
        raise HeedfulError("there is no tokenizer at this address", where=where, remedy="check the address")
    with working_copy(where) as copy:
        return Tokenizer.load(copy)


def recipe_of(settings: CorpusSettings) -> Recipe:
    """How the examples that are written ahead are made."""
    return Recipe(max_length=settings.length, pairs=settings.pairs, masking=settings.masking, seed=settings.seed)


def _write_examples(corpus: Corpus, settings: CorpusSettings, workers: Workers, bar: Bar) -> None:
    with bar("writing", None, "examples") as advance:
        total = 0
        for count in write_examples(corpus.here, recipe_of(settings), settings.duplicates, workers):
            total += count
            advance(total, total)
