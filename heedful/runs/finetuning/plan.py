"""What a fine-tuning run does, worked out from its settings before anything is trained, and kept in config.toml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from heedful.data.labelled.dataset import Columns
from heedful.errors import HeedfulError
from heedful.runs.finetuning.data import columns_of
from heedful.runs.finetuning.settings import FinetuningSettings
from heedful.runs.finetuning.task_fields import TASK_FIELDS
from heedful.runs.settings import resolved
from heedful.tasks.registry import task_named
from heedful.tasks.task import Task
from heedful.training.training_config import TrainingConfig

# The settings that are fields of a plan as they stand.
SAME = (
    *("task", "freeze", "set", "layer_decay", "dropout", "random_weights", "by_tokens"),
    *("epochs", "budget", "force", "encoding", "bad_rows", "merge_labels", "multi", *TASK_FIELDS),
)
RATE = 5e-5
HEAD_RATE = 1e-3  # of layers that start from nothing and are more than one matrix
EXAMPLES, TOKENS = 32, 4096  # of a batch


@dataclass(frozen=True)
class Plan:
    """Everything that decides what comes out of a run."""

    task: str
    model: str  # the folder to start from
    train: str
    columns: Columns
    training: TrainingConfig
    dev: str | None = None
    encoding: str | None = None  # of the files
    bad_rows: str = "error"
    merge_labels: str | None = None
    limit: int = 0  # use only the first rows of the training file; 0 is all
    max_length: int | None = None  # None is the task's own
    stride: int | None = None
    head: str | None = None
    features: tuple[int, ...] = ()
    combine: str | None = None
    lstm_width: int | None = None
    lstm_layers: int | None = None
    multi: bool = False
    balance: bool = False
    decide_by: str | None = None  # of two labels, the score that places the threshold
    pooling: str | None = None
    freeze: str | None = None
    layer_decay: float = 1.0
    head_rate: float | None = None  # the head's own learning rate
    dropout: float | None = None
    random_weights: bool = False  # the folder's shape and vocabulary, but none of what it has learned
    batch_size: int = EXAMPLES
    by_tokens: bool = False
    epochs: float = 3.0
    budget: str | None = None  # instead of epochs
    keep: str = "best"
    set: Mapping[str, Any] = field(default_factory=dict)  # fields that only the task has
    force: bool = False  # take a tokenizer of far fewer pieces than the model has rows


def plan_of(settings: FinetuningSettings, steps: int, eval_every: int) -> Plan:
    """The plan of the settings with so many steps and an evaluation every so many."""
    return Plan(
        **{name: getattr(settings, name) for name in SAME},
        model=str(settings.model),
        train=str(settings.train),
        dev=None if settings.dev is None else str(settings.dev),
        limit=settings.limit or 0,
        columns=columns_of(settings),
        head_rate=head_rate_of(settings),
        batch_size=batch_size_of(settings),
        keep=keep_of(settings),
        training=training_of(settings, steps, eval_every),
    )


def training_of(settings: FinetuningSettings, steps: int, eval_every: int = 0) -> TrainingConfig:
    """What the trainer is told."""
    kind = task_named(settings.task_name)
    metric = _metric(kind, settings.metric)
    rate = HEAD_RATE if settings.features else RATE
    return TrainingConfig(
        steps=steps,
        learning_rate=rate if settings.learning_rate is None else settings.learning_rate,
        warmup=settings.warmup,
        weight_decay=settings.weight_decay,
        accumulate=settings.accumulate,
        shard=settings.shard,
        precision=resolved(settings.precision),
        seed=settings.seed,
        eps=1e-8,
        eval_every=eval_every,
        checkpoint_every=settings.checkpoint_every,
        best=metric if settings.dev else None,
        higher_is_better=metric not in kind.errors,
        patience=settings.patience,
        restore_best=keep_of(settings) == "best",
    )


def keep_of(settings: FinetuningSettings) -> str:
    """Which weights the run ends with."""
    return (settings.keep or "best") if settings.dev else "last"


def batch_size_of(settings: FinetuningSettings) -> int:
    """Examples of a batch, or tokens."""
    return settings.batch_size or (TOKENS if settings.by_tokens else EXAMPLES)


def head_rate_of(settings: FinetuningSettings) -> float | None:
    """The head's own learning rate, if it has one."""
    layered = settings.head not in (None, "linear") and not settings.features
    return settings.head_rate or (HEAD_RATE if layered else None)


def _metric(kind: type[Task[Any]], asked: str | None) -> str:
    """The score that decides; a task of one's own may not tell beforehand which scores it has."""
    if asked is not None and kind.scores and asked not in kind.scores:
        raise HeedfulError(f"{kind.name} has no score {asked!r}", remedy=f"the scores are {', '.join(kind.scores)}")
    return asked or kind.best
