"""What a translation run does, worked out from its settings before anything is trained, and kept in config.toml."""

from __future__ import annotations

from dataclasses import dataclass, replace

from heedful.checkpoints.translation_folder import longest_text
from heedful.data.bitext.pairs import Limits
from heedful.errors import HeedfulError
from heedful.models.seq2seq_config import Seq2SeqConfig
from heedful.models.transformer import OF_THE_PAPER, TransformerConfig
from heedful.runs.settings import resolved
from heedful.runs.translation.material import limits_of, names_of
from heedful.runs.translation.settings import TranslationSettings
from heedful.runs.translation.shape import Shape
from heedful.tasks.translate import Forcing
from heedful.tasks.translate_scores import check_tokenizer, tokenizer_for
from heedful.training.schedule import transformer_peak
from heedful.training.training_config import TrainingConfig

RATE, RATE_OF_LARGE = 2e-3, 1e-3
SAME = (
    *("vocab_size", "separate", "encoder_rate"),
    *("batch_size", "label_smoothing", "epochs", "budget", "average", "beam", "encoding"),
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
    encoding: str | None = None  # of the files
    limit: int = 0  # use only the first pairs of the training data; 0 is all
    tokenizer: tuple[str, ...] = ()  # folders, one for both sides or one for each; none: learn them
    vocab_size: int = 8000
    separate: bool = False
    start: str | None = None  # the folder of a translator to go on with
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


def plan_of(settings: TranslationSettings, shape: Shape, steps: int, eval_every: int, checkpoint_every: int) -> Plan:
    """The plan of the settings with a model of this shape, so many steps, and evaluations and checkpoints so often."""
    source, target = names_of(settings)
    training = training_of(settings, steps, eval_every, checkpoint_every)
    return Plan(
        **{name: getattr(settings, name) for name in SAME},
        start=None if settings.start is None else str(settings.start),
        tokenizer=tuple(map(str, settings.tokenizer)),
        encoder=None if settings.encoder is None else str(settings.encoder),
        train=tuple(map(str, settings.train)),
        dev=tuple(map(str, settings.dev)),
        limit=settings.limit or 0,
        source=source,
        target=target,
        limits=limits_of(settings),
        forcing=parse_forcing(settings.forcing),
        bleu_tokenizer=bleu_tokenizer_of(settings),
        training=_with_paper_rate(training, settings, shape),
        transformer=shape if isinstance(shape, TransformerConfig) else None,
        seq2seq=shape if isinstance(shape, Seq2SeqConfig) else None,
    )


def training_of(
    settings: TranslationSettings, steps: int, eval_every: int = 0, checkpoint_every: int = 0
) -> TrainingConfig:
    """What the trainer is told."""
    metric = settings.metric or "bleu"
    usual = RATE_OF_LARGE if settings.size in OF_THE_PAPER else RATE
    return TrainingConfig(
        steps=steps,
        learning_rate=settings.learning_rate or usual,
        beta2=0.98,
        eps=1e-9,
        warmup=settings.warmup,
        schedule=settings.schedule,
        weight_decay=settings.weight_decay,
        clip=settings.clip,
        accumulate=settings.accumulate,
        shard=settings.shard,
        precision=resolved(settings.precision),
        seed=settings.seed,
        eval_every=eval_every,
        checkpoint_every=checkpoint_every,
        keep_last=max(settings.average, 2),
        best=metric if settings.dev else None,
        higher_is_better=metric != "loss",
        patience=settings.patience,
        restore_best=bool(settings.dev),
    )


def bleu_tokenizer_of(settings: TranslationSettings) -> str:
    """How sacreBLEU is to cut texts into words."""
    return check_tokenizer(settings.bleu_tokenizer or tokenizer_for(names_of(settings)[1]))


def check_shape(settings: TranslationSettings, shape: Shape) -> None:
    """Refuse a model that texts or teacher forcing do not go with."""
    takes_words = isinstance(shape, Seq2SeqConfig) and shape.takes_words
    if parse_forcing(settings.forcing) != Forcing() and not takes_words:
        what = "`forcing` below 1 is for RNNs that are given the word before: decoder 3, or attention"
        raise HeedfulError(what, remedy="leave it out")
    if settings.max_length > longest_text(shape):
        what = f"texts of {settings.max_length} tokens are longer than the model's {longest_text(shape)}"
        raise HeedfulError(what, remedy="use a lower `max_length`, or `set` max_length of the model")


def _with_paper_rate(training: TrainingConfig, settings: TranslationSettings, shape: Shape) -> TrainingConfig:
    """Where the paper's schedule is asked for and no rate, the paper's rate, which follows from width and warm-up."""
    paper = training.schedule == "inverse_sqrt" and isinstance(shape, TransformerConfig)
    if settings.learning_rate is not None or not paper:
        return training
    assert isinstance(shape, TransformerConfig)
    return replace(training, learning_rate=transformer_peak(shape.width, max(training.warmup_steps, 1)))


def parse_forcing(text: str) -> Forcing:
    """Read `1`, or `1:0.5` for a share that falls from 1 to 0.5 in the course of the training."""
    first, _, last = text.partition(":")
    try:
        return Forcing(float(first), float(last or first))
    except ValueError as error:
        what = f"the `forcing` {text} is not understood"
        raise HeedfulError(what, remedy="write a share, or two as 1:0.5") from error
