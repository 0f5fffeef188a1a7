"""What a distilling run does, worked out from its settings before anything is trained, and kept in config.toml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from heedful.data.labelled.dataset import Columns
from heedful.errors import HeedfulError
from heedful.runs.distilling.lesson import Lesson
from heedful.runs.distilling.settings import DistillingSettings
from heedful.runs.settings import resolved
from heedful.training.training_config import TrainingConfig

# The settings that are fields of a plan as they stand.
SAME = (
    *("learn", "size", "set", "start", "pooling", "keep_width", "encoding", "limit", "held_out", "epochs", "budget"),
    *("temperature", "label_weight", "dropout", "batch_size", "max_length", "force"),
)
RATE, RATE_ON = 1e-3, 3e-4  # of a student that starts, and of one that has learned before,
FITTING = 256  # up to this width
PLACES = ("teacher", "train", "dev", "labelled", "student", "tokenizer")


@dataclass(frozen=True)
class Plan:
    """Everything that decides what comes out of a run."""

    teacher: str
    train: str
    texts: int  # that the student learns from
    columns: Columns
    training: TrainingConfig
    dev: str | None = None
    labelled: str | None = None
    learn: str | None = None
    size: str = "mini"
    set: Mapping[str, Any] = field(default_factory=dict)
    student: str | None = None
    tokenizer: str | None = None
    start: str = "teacher"
    pooling: str | None = None
    keep_width: bool = False
    encoding: str | None = None
    limit: int | None = None
    held_out: int = 500
    epochs: float = 3.0
    budget: str | None = None
    temperature: float = 2.0
    label_weight: float = 0.5
    dropout: float = 0.0
    batch_size: int = 64
    max_length: int = 128
    keep: str = "best"
    force: bool = False


def plan_of(settings: DistillingSettings, texts: int, training: TrainingConfig) -> Plan:
    """The plan of the settings with so many texts."""
    places = {name: getattr(settings, name) for name in PLACES}
    return Plan(
        **{name: getattr(settings, name) for name in SAME},
        **{name: None if place is None else str(place) for name, place in places.items()},  # type: ignore[arg-type]
        texts=texts,
        columns=columns_of(settings),
        keep=settings.keep or "best",
        training=training,
    )


def rate_of(settings: DistillingSettings, width: int) -> float:
    """The learning rate: that which was given, else one that suits the student's width and what it knows already."""
    if settings.learning_rate is not None:
        return settings.learning_rate
    return (RATE if settings.student is None else RATE_ON) * min(1.0, FITTING / width)


def check_metric(asked: str | None, lesson: Lesson) -> None:
    """Refuse a score that there will not be, before the teacher is asked."""
    scores = (*lesson.task.scores, lesson.decides)
    if asked is not None and asked not in scores:
        raise HeedfulError(f"there is no score {asked!r}", remedy=f"the scores are {', '.join(scores)}")


def training_of(
    settings: DistillingSettings, lesson: Lesson, decides: str, steps: int, eval_every: int = 0
) -> TrainingConfig:
    """What the trainer is told."""
    return TrainingConfig(
        steps=steps,
        learning_rate=settings.learning_rate or RATE,
        warmup=settings.warmup,
        weight_decay=settings.weight_decay,
        accumulate=settings.accumulate,
        precision=resolved(settings.precision),
        seed=settings.seed,
        eval_every=eval_every,
        checkpoint_every=settings.checkpoint_every,
        best=decides,
        higher_is_better=decides not in lesson.task.errors,
        patience=settings.patience,
        restore_best=(settings.keep or "best") == "best",
    )


def columns_of(settings: DistillingSettings) -> Columns:
    """The columns that were named."""
    return Columns(settings.text, settings.pair, settings.label)
