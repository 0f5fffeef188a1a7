"""What a translation run will do, worked out from its options before anything is trained, and kept in config.toml."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from heedful.checkpoints.translation_folder import longest_text
from heedful.cli.pretrain_plan import parse_budget
from heedful.cli.translate_shape import Asked
from heedful.data.bitext import Limits
from heedful.data.tables import ending
from heedful.errors import HeedfulError
from heedful.models.seq2seq_config import Seq2SeqConfig
from heedful.models.transformer import OF_THE_PAPER, TransformerConfig
from heedful.tasks.translate import Forcing
from heedful.tasks.translate_scores import check_tokenizer, tokenizer_for
from heedful.training.schedule import transformer_peak
from heedful.training.training_config import TrainingConfig

RATE, RATE_OF_LARGE = 2e-3, 1e-3
SAME = (
    *("train", "dev", "limit", "tokenizer", "vocab_size", "separate", "encoder"),
    *("batch_size", "label_smoothing", "epochs", "budget", "average", "beam"),
)


@dataclass(frozen=True)
class Plan:
    """Everything that decides what comes out of a run."""

    train: tuple[str, ...]  # a table, or two texts
    source: str  # what the two sides are called: the columns of a table
    target: str
    training: TrainingConfig
    limits: Limits
    forcing: Forcing
    dev: tuple[str, ...] = ()
    limit: int = 0  # use only the first pairs of the training data; 0 is all
    tokenizer: tuple[str, ...] = ()  # folders, one for both sides or one for each; none: learn them
    vocab_size: int = 8000
    separate: bool = False
    encoder: str | None = None  # the folder of a BERT that the encoder starts as
    encoder_rate: float = 5e-5  # which has a learning rate of its own
    transformer: TransformerConfig | None = None  # one of the two
    seq2seq: Seq2SeqConfig | None = None
    batch_size: int = 2048
    label_smoothing: float = 0.1
    epochs: float = 20.0
    budget: str | None = None  # instead of epochs
    average: int = 5  # how many of the last checkpoints
    beam: int = 1
    bleu_tokenizer: str = "13a"

    def __post_init__(self) -> None:
        if not 0 < self.epochs < math.inf:
            raise HeedfulError(f"{self.epochs:g} epochs", remedy="train at least a part of one, as 0.5")
        for name in ("train", "dev", "tokenizer"):
            if len(getattr(self, name)) > 2:
                raise HeedfulError(f"--{name} is given more than twice", remedy="give it once, or once for each side")
        if len(self.tokenizer) == 2 and self.encoder is not None:
            raise HeedfulError("a BERT brings its own tokenizer", remedy="give --tokenizer once, for the target side")

    @property
    def names(self) -> tuple[str, str]:
        """What the two sides are called."""
        return self.source, self.target

    @property
    def shape(self) -> TransformerConfig | Seq2SeqConfig:
        """The shape of the model."""
        shape = self.transformer or self.seq2seq
        assert shape is not None
        return shape

    def with_shape(self, shape: TransformerConfig | Seq2SeqConfig) -> Plan:
        """The same plan with a model, if texts and teacher forcing go with it."""
        takes_words = isinstance(shape, Seq2SeqConfig) and shape.takes_words
        if self.forcing != Forcing() and not takes_words:
            what = "--forcing below 1 is for RNNs that are given the word before: decoder 3, or attention"
            raise HeedfulError(what, remedy="leave it out")
        if self.limits.max_length > longest_text(shape):
            what = f"texts of {self.limits.max_length} tokens are longer than the model's {longest_text(shape)}"
            raise HeedfulError(what, remedy="use a lower --max-length, or --set max_length=…")
        if isinstance(shape, TransformerConfig):
            return replace(self, transformer=shape)
        return replace(self, seq2seq=shape)

    def with_training(self, **changes: Any) -> Plan:
        """The same plan with another recipe."""
        return replace(self, training=replace(self.training, **changes))


def asked_shape(options: Mapping[str, Any]) -> Asked:
    """What the options say about the shape of the model."""
    return Asked(**{name: options[name] for name in ("model", "size", "cell", "decoder", "dropout", "fields")})


def plan_of(options: Mapping[str, Any]) -> Plan:
    """The plan of the options; its shape and its steps are worked out when the data is read."""
    _check_dev(options)
    if options["budget"]:
        parse_budget(options["budget"])
    metric = options["metric"] or "bleu"
    source, target = _names(options)
    return Plan(
        **{name: options[name] for name in SAME},
        source=source,
        target=target,
        encoder_rate=options["encoder_rate"],
        limits=Limits(options["max_length"], options["max_ratio"]),
        forcing=parse_forcing(options["forcing"]),
        bleu_tokenizer=check_tokenizer(options["bleu_tokenizer"] or tokenizer_for(target)),
        training=TrainingConfig(
            steps=1,
            learning_rate=options["learning_rate"] or (RATE_OF_LARGE if options["size"] in OF_THE_PAPER else RATE),
            beta2=0.98,
            eps=1e-9,
            warmup=options["warmup"],
            schedule=options["schedule"],
            weight_decay=options["weight_decay"],
            clip=options["clip"],
            portions=options["portions"],
            precision=options["precision"],
            seed=options["seed"],
            eval_every=options["eval_every"],
            checkpoint_every=options["checkpoint_every"],
            keep_last=max(options["average"], 2),
            best=metric if options["dev"] else None,
            higher_is_better=metric != "loss",
            patience=options["patience"],
            restore_best=bool(options["dev"]),
        ),
    )


def _names(options: Mapping[str, Any]) -> tuple[str, str]:
    """What the two sides are called: as asked for, or as two texts end, train.en and train.de."""
    endings = [ending(Path(file)).removeprefix(".") for file in options["train"]]
    usual = endings if len(set(endings)) == 2 and all(endings) else ["source", "target"]
    source, target = (options[name] or by_default for name, by_default in zip(("source", "target"), usual, strict=True))
    if source == target and len(options["train"]) == 1:
        raise HeedfulError(f"source and target are the same column {source!r}", remedy="name two columns")
    return source, target


def with_paper_rate(plan: Plan, options: Mapping[str, Any]) -> Plan:
    """Where the paper's schedule is asked for and no rate, the paper's rate, which follows from width and warm-up."""
    if options["learning_rate"] is not None or plan.training.schedule != "inverse_sqrt" or plan.transformer is None:
        return plan
    peak = transformer_peak(plan.transformer.width, max(plan.training.warmup_steps, 1))
    return plan.with_training(learning_rate=peak)


def parse_forcing(text: str) -> Forcing:
    """Read `1`, or `1:0.5` for a share that falls from 1 to 0.5 in the course of the training."""
    first, _, last = text.partition(":")
    try:
        return Forcing(float(first), float(last or first))
    except ValueError as error:
        raise HeedfulError(f"--forcing {text} is not understood", remedy="write a share, or two as 1:0.5") from error


def _check_dev(options: Mapping[str, Any]) -> None:
    """Refuse options that would have no effect because nothing is evaluated."""
    idle = [name for name in ("metric", "patience", "eval_every") if options[name] and not options["dev"]]
    if idle:
        option = idle[0].replace("_", "-")
        raise HeedfulError(f"--{option} has no effect without dev data", remedy="give --dev FILE, or leave it out")
