"""The shape of a translation model from the options: a size, a few choices, and any field of its config."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from heedful.cli.settings import parse_settings
from heedful.config import from_mapping, to_mapping
from heedful.errors import HeedfulError
from heedful.models import seq2seq_config, transformer
from heedful.models.encoder import EncoderConfig
from heedful.models.seq2seq_config import Seq2SeqConfig
from heedful.models.transformer import TransformerConfig

C = TypeVar("C", TransformerConfig, Seq2SeqConfig)
MODELS = ("transformer", "attention", "rnn")
# Small models learn small data by heart unless much is dropped; the paper's sizes are for large data.
DROPOUT, DROPOUT_OF_LARGE = 0.3, 0.1


@dataclass(frozen=True)
class Asked:
    """What was said about the shape."""

    model: str = "transformer"
    size: str = "small"
    cell: str | None = None  # of an RNN
    decoder: str | None = None  # of an RNN without attention
    dropout: float | None = None
    fields: tuple[str, ...] = ()  # FIELD=VALUE

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise HeedfulError(f"no model is called {self.model!r}", remedy=f"choose one of {', '.join(MODELS)}")
        if self.cell is not None and self.model == "transformer":
            raise HeedfulError("--cell does not go with a transformer", remedy="leave it out, or choose an RNN")
        if self.decoder is not None and self.model != "rnn":
            raise HeedfulError(f"--decoder does not go with {self.model}", remedy="leave it out, or use --model rnn")


def shape_of(
    asked: Asked, source_vocab_size: int, target_vocab_size: int, joint: bool, bert: EncoderConfig | None = None
) -> TransformerConfig | Seq2SeqConfig:
    """The config of the model that was asked for; `bert` is the shape of a BERT in the place of its encoder."""
    sizes = (source_vocab_size, target_vocab_size, joint)
    if asked.model != "transformer":
        if bert is not None:
            raise HeedfulError("--encoder does not go with an RNN", remedy="use --model transformer")
        return _with_fields(_recurrent(asked, *sizes), asked)
    if bert is None:
        return _with_fields(transformer.sized(asked.size, *sizes), asked)
    own = transformer.sized(asked.size, target_vocab_size, target_vocab_size)
    return _with_fields(transformer.with_encoder(own, bert), asked)


def _recurrent(asked: Asked, source: int, target: int, joint: bool) -> Seq2SeqConfig:
    plain = to_mapping(seq2seq_config.sized(asked.size, source, target, joint))
    decoder = "attention" if asked.model == "attention" else asked.decoder or "3"
    choices = {"decoder": decoder, **({"cell": asked.cell} if asked.cell else {})}
    return from_mapping(Seq2SeqConfig, {**plain, **choices}, "options")


def _with_fields(config: C, asked: Asked) -> C:
    usual = DROPOUT_OF_LARGE if asked.size in transformer.OF_THE_PAPER else DROPOUT
    config = replace(config, dropout=usual if asked.dropout is None else asked.dropout)
    settings = parse_settings(asked.fields, type(config), "decoder_layers=4")
    return from_mapping(type(config), {**to_mapping(config), **settings}, "--set")
