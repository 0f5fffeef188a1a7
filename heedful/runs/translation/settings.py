"""What `heedful translate train` is told."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, Literal

from heedful.errors import HeedfulError
from heedful.runs.settings import SHARD, Place, Precision, check_bounds, one_or_two, refuse_idle, told

# What a model that is trained already has of its own.
SHAPE = ("model", "size", "set", "cell", "decoder", "encoder", "vocab_size", "separate", "tokenizer")


@dataclass(frozen=True)
class TranslationSettings:
    """A model of one's own that translates, or replies, from pairs of sentences."""

    _: KW_ONLY
    train: Any = told(
        help="Pairs: one TSV, CSV or JSON lines; or, given twice, two texts that go line by line: a.en and a.de.",
        place="file",
        several=True,
    )
    dev: Any = told((), "Pairs to choose the best weights by.", place="file", several=True)
    output: Place = told(help="The run's folder.", place="folder", flags=("-o", "--output"))
    source: str | None = told(None, "The column to translate from.", unset="source; of two texts, as they end")
    target: str | None = told(None, "The column to translate to.", unset="target; of two texts, as they end")
    encoding: str | None = told(None, "Of the files: gb18030, utf-16, cp1252 …", unset="utf-8")
    limit: int | None = told(None, "Train on the first N pairs only.", unset="all", least=1, metavar="N")
    start: Place | None = told(
        None,
        "Go on with this trained translator, its shape and its vocabulary, on other pairs.",
        place="folder",
        flags=("--from",),
    )
    model: str = told("transformer", "transformer, attention (an RNN) or rnn.")
    size: str = told("small", "tiny, small, medium, base or big.")
    set: Mapping[str, Any] = told({}, "Any field of the model's config.", metavar="FIELD=VALUE")
    cell: str | None = told(None, "Of an RNN: rnn, gru or lstm.", unset="gru")
    decoder: str | None = told(None, "Of an RNN without attention: 1, 2 or 3.", unset="3")
    encoder: Place | None = told(None, "A BERT folder to be the encoder.", place="folder")
    encoder_rate: float = told(5e-5, "Learning rate of that BERT.", above=0)
    vocab_size: int = told(8000, "Pieces of byte-level BPE.", least=1)
    separate: bool = told(False, "A vocabulary for each side, not one for both.")
    tokenizer: tuple[Place, ...] = told(
        (),
        "A tokenizer that is there already, for both sides; or twice, source and target.",
        place="any",
        several=True,
    )
    max_length: int = told(128, "Leave out longer pairs (tokens).", least=1)
    max_ratio: float = told(9.0, "Leave out more unequal pairs.")
    epochs: float = told(20.0)
    budget: str | None = told(None, "30m, 2h or 20000steps instead of epochs.")
    learning_rate: float | None = told(
        None,
        unset="2e-3; 1e-3 for base and big; the paper's for inverse_sqrt",
        above=0,
        flags=("--learning-rate", "--lr"),
    )
    warmup: float = told(0.1, "Share of the steps, or steps from 1 on.")
    schedule: Literal["linear", "cosine", "inverse_sqrt", "constant"] = told(
        "linear", "After the warm-up; inverse_sqrt is the Transformer paper's."
    )
    weight_decay: float = told(0.0, least=0)
    clip: float = told(1.0, "Largest norm of the gradient; 0 for none.")
    dropout: float | None = told(None, unset="0.3; 0.1 for base and big; a BERT's own", least=0, below=1)
    label_smoothing: float = told(0.1, least=0, below=1)
    forcing: str = told("1", "An RNN's teacher forcing: a share, or 1:0.5 over time.")
    batch_size: int = told(2048, "Tokens of both sides.", least=1)
    accumulate: int = told(1, "Gradient accumulation: micro-batches a step.", least=1, formerly="portions")
    shard: bool = told(False, SHARD)
    precision: Precision = told("auto", "Mixed precision: bfloat16 where the processor has it, else float32.")
    seed: int = told(1, least=0)
    average: int = told(5, "The last N checkpoints.", least=0)
    metric: Literal["bleu", "chrf", "loss"] | None = told(None, "What decides on dev.", unset="bleu")
    bleu_tokenizer: str | None = told(None, "sacreBLEU's: 13a, intl, zh, char, none.", unset="by the target's name")
    beam: int = told(1, "Of evaluations.", least=1)
    patience: int = told(0, "Stop after so many evaluations without a better one.")
    eval_every: int = told(0, "In steps.", unset="once an epoch, at most 20 times")
    checkpoint_every: int = told(0, "In steps.", unset="with every evaluation")

    def __post_init__(self) -> None:
        for name in ("train", "dev"):
            object.__setattr__(self, name, one_or_two(getattr(self, name)))
        check_bounds(self)
        refuse_idle(self, ("metric", "patience", "eval_every"))
        if not 0 < self.epochs < math.inf:
            raise HeedfulError(f"{self.epochs:g} epochs", remedy="train at least a part of one, as 0.5")
        for name in ("train", "dev", "tokenizer"):
            if len(getattr(self, name)) > 2:
                raise HeedfulError(f"`{name}` is given more than twice", remedy="give it once, or once for each side")
        if self.start is not None:
            self._refuse_shape()
        if len(self.tokenizer) == 2 and self.encoder is not None:
            raise HeedfulError("a BERT brings its own tokenizer", remedy="give `tokenizer` once, for the target side")

    def _refuse_shape(self) -> None:
        """A trained translator has a shape and a vocabulary already."""
        defaults = {field.name: field.default for field in fields(self)}
        for name in SHAPE:
            if getattr(self, name) not in (defaults[name], {}):
                raise HeedfulError(f"`{name}` does not go with `start`", remedy="leave it out: the model has its own")
