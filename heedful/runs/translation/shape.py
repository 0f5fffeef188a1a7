"""The shape of a translation model from the settings: a size, a few choices, and any field of its config."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from heedful.checkpoints.translation_folder import read_shape
from heedful.config import from_mapping, to_mapping
from heedful.errors import HeedfulError
from heedful.inference.load import model_path
from heedful.models import seq2seq_config, transformer
from heedful.models.encoder import EncoderConfig
from heedful.models.seq2seq_config import Seq2SeqConfig
from heedful.models.transformer import TransformerConfig
from heedful.runs.overrides import overridden
from heedful.runs.translation.settings import TranslationSettings

Shape = TransformerConfig | Seq2SeqConfig
C = TypeVar("C", TransformerConfig, Seq2SeqConfig)
MODELS = ("transformer", "attention", "rnn")
# Small models learn small data by heart unless much is dropped; the paper's sizes are for large data.
DROPOUT, DROPOUT_OF_LARGE = 0.3, 0.1


def shape_of(
    settings: TranslationSettings,
    source_vocab_size: int,
    target_vocab_size: int,
    joint: bool,
    bert: EncoderConfig | None = None,
) -> Shape:
    """The config of the model that is asked for; `bert` is the shape of a BERT in the place of its encoder."""
    _check(settings)
    if settings.start is not None:
        own, _ = read_shape(model_path(settings.start))
        return own if settings.dropout is None else _dropping(own, settings.dropout)
    sizes = (source_vocab_size, target_vocab_size, joint)
    if settings.model != "transformer":
        if bert is not None:
            raise HeedfulError("`encoder` does not go with an RNN", remedy="use transformer as the `model`")
        return _with_fields(_recurrent(settings, *sizes), settings)
    if bert is None:
        return _with_fields(transformer.sized(settings.size, *sizes), settings)
    own = transformer.sized(settings.size, target_vocab_size, target_vocab_size)
    return _with_fields(transformer.with_encoder(own, bert), settings)


def _check(settings: TranslationSettings) -> None:
    model = settings.model
    if model not in MODELS:
        raise HeedfulError(f"no model is called {model!r}", remedy=f"choose one of {', '.join(MODELS)}")
    if settings.cell is not None and model == "transformer":
        raise HeedfulError("`cell` does not go with a transformer", remedy="leave it out, or choose an RNN")
    if settings.decoder is not None and model != "rnn":
        raise HeedfulError(f"`decoder` does not go with {model}", remedy="leave it out, or use rnn as the `model`")


def _recurrent(settings: TranslationSettings, source: int, target: int, joint: bool) -> Seq2SeqConfig:
    plain = to_mapping(seq2seq_config.sized(settings.size, source, target, joint))
    decoder = "attention" if settings.model == "attention" else settings.decoder or "3"
    choices = {"decoder": decoder, **({"cell": settings.cell} if settings.cell else {})}
    return from_mapping(Seq2SeqConfig, {**plain, **choices}, "settings")


def _dropping(config: Shape, dropout: float) -> Shape:
    """The same shape with another dropout, also in a BERT that is its encoder."""
    if isinstance(config, TransformerConfig) and config.encoder is not None:
        config = replace(config, encoder=config.encoder.with_dropout(dropout))
    return replace(config, dropout=dropout)


def _with_fields(config: C, settings: TranslationSettings) -> C:
    usual = DROPOUT_OF_LARGE if settings.size in transformer.OF_THE_PAPER else DROPOUT
    config = replace(config, dropout=usual if settings.dropout is None else settings.dropout)
    return overridden(config, settings.set)
