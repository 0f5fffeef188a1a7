"""What a translation run works with: its pairs, read and encoded, the tokenizers of both sides, and perhaps a BERT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from heedful.checkpoints.folder import ModelFolder, read_folder
from heedful.checkpoints.int8_scheme import refuse_training
from heedful.checkpoints.translation_folder import TranslationFolder, check_frame, load_translation, read_shape
from heedful.data.bitext.pairs import EncodedPairs, Limits, encode_pairs
from heedful.data.bitext.reading import SentencePair, read_pairs
from heedful.data.labelled.dataset import Dataset
from heedful.data.tables import ending
from heedful.errors import HeedfulError
from heedful.inference.load import model_path
from heedful.runs.settings import Place
from heedful.runs.translation.settings import TranslationSettings
from heedful.text.encodings import reading_as
from heedful.text.sides import Sides, learn_sides
from heedful.text.tokenizer import Tokenizer
from heedful.text.tokenizer_training import train as learn_tokenizer


@dataclass(frozen=True)
class Material:
    """The training pairs as tokens, and the dev pairs as texts and as tokens."""

    sides: Sides
    train: EncodedPairs
    dev: Sequence[SentencePair]
    dev_encoded: EncodedPairs | None  # without those that are unusable
    bert: ModelFolder | None
    start: TranslationFolder | None = None  # the translator to go on with

    @classmethod
    def of(cls, settings: TranslationSettings, note: Callable[[str], object]) -> Material:
        """Read, learn and encode all of it; `note` hears what was odd and what takes a while."""
        bert, names = read_bert(settings), names_of(settings)
        start = None if settings.start is None else load_translation(model_path(settings.start))
        if start is not None:
            refuse_training(start.int8, start.path)
        with reading_as(settings.encoding):
            train = read_pairs(settings.train, *names)
            dev: Dataset[SentencePair] = read_pairs(settings.dev, *names) if settings.dev else Dataset(())
        if settings.limit:
            train = replace(train, examples=train.examples[: settings.limit])
        sides = start.sides if start else _sides(settings, train.examples, bert, note)
        limits = limits_of(settings)
        encoded, left_out = encode_pairs(train.examples, sides, limits)
        dev_encoded, dev_left_out = encode_pairs(dev.examples, sides, limits) if dev.examples else (None, ())
        for name, remarks in (("train", train.remarks + left_out), ("dev", dev.remarks + dev_left_out)):
            for remark in remarks:
                note(f"{name}: {remark}")
        return cls(sides, encoded, dev.examples, dev_encoded, bert, start)


def read_bert(settings: TranslationSettings) -> ModelFolder | None:
    """The folder of the BERT that an encoder starts as, if one is named; it has the dropout that is asked for."""
    if settings.encoder is None:
        return None
    bert = read_folder(model_path(settings.encoder)).with_dropout(settings.dropout)
    bert.require_tokenizer()
    refuse_training(bert.int8, bert.path)
    return bert


def names_of(settings: TranslationSettings) -> tuple[str, str]:
    """What the two sides are called: as asked for, or as two texts end, train.en and train.de."""
    endings = [ending(Path(str(file))).removeprefix(".") for file in settings.train]
    known = ("source", "target") if settings.start is None else read_shape(model_path(settings.start))[1]
    usual = endings if len(set(endings)) == 2 and all(endings) else known
    source, target = settings.source or usual[0], settings.target or usual[1]
    if source == target and len(settings.train) == 1:
        raise HeedfulError(f"source and target are the same column {source!r}", remedy="name two columns")
    return source, target


def limits_of(settings: TranslationSettings) -> Limits:
    """Which pairs are left out."""
    return Limits(settings.max_length, settings.max_ratio)


def _sides(
    settings: TranslationSettings,
    pairs: Sequence[SentencePair],
    bert: ModelFolder | None,
    note: Callable[[str], object],
) -> Sides:
    given = [_loaded(folder) for folder in settings.tokenizer]
    if bert is not None and bert.tokenizer is not None:
        return Sides(bert.tokenizer, given[0] if given else _target_alone(settings, pairs, note))
    if given:
        return Sides(given[0], given[-1])
    kind = "two vocabularies" if settings.separate else "a vocabulary for both sides"
    note(f"learning {kind} of {settings.vocab_size:,} pieces from {len(pairs):,} pairs")
    sources, targets = (pair.source for pair in pairs), (pair.target for pair in pairs)
    return learn_sides(sources, targets, settings.vocab_size, separate=settings.separate)


def _target_alone(
    settings: TranslationSettings, pairs: Sequence[SentencePair], note: Callable[[str], object]
) -> Tokenizer:
    note(f"learning a vocabulary of {settings.vocab_size:,} pieces for the target side")
    return learn_tokenizer((pair.target for pair in pairs), "bpe", settings.vocab_size, cased=True)


def _loaded(folder: Place) -> Tokenizer:
    tokenizer = Tokenizer.load(folder)
    check_frame(tokenizer, folder)
    return tokenizer
