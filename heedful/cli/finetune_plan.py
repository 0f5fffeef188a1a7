"""What a fine-tuning run will do, worked out from its options before anything is trained, and kept in config.toml."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from heedful.data.labelled import Columns
from heedful.errors import HeedfulError
from heedful.tasks.registry import task_named
from heedful.tasks.task import Task
from heedful.training.training_config import TrainingConfig

# The options that are fields of a task, where the task has such a field.
TASK_FIELDS = ("max_length", "stride", "head", "features", "combine", "lstm_width", "lstm_layers")
# The options that are fields of a plan as they stand.
SAME = ("task", "model", "train", "dev", "freeze", "layer_decay", "dropout", "random_weights", "by_tokens", "force")
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
    limit: int = 0  # use only the first rows of the training file; 0 is all
    max_length: int | None = None  # None is the task's own
    stride: int | None = None
    head: str | None = None
    features: tuple[int, ...] = ()
    combine: str | None = None
    lstm_width: int | None = None
    lstm_layers: int | None = None
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
    force: bool = False  # take a tokenizer of far fewer pieces than the model has rows

    def __post_init__(self) -> None:
        if self.keep not in ("best", "last"):
            raise HeedfulError(f"--keep {self.keep} is not understood", remedy="write best or last")
        if not 0 < self.epochs < math.inf:
            raise HeedfulError(f"{self.epochs:g} epochs", remedy="train at least a part of one, as 0.5")
        if not 0 < self.layer_decay <= 1:
            raise HeedfulError(f"a layer decay of {self.layer_decay}", remedy="use one above 0 and up to 1, as 0.9")

    def task_fields(self, known: Collection[str]) -> dict[str, Any]:
        """The fields of the task that were asked for; the task must know them."""
        found = {name: value for name in TASK_FIELDS if (value := getattr(self, name)) not in (None, ())}
        for name in found:
            if name not in known:
                option = name.replace("_", "-")
                raise HeedfulError(f"--{option} does not go with {self.task}", remedy="leave it out")
        return found

    def with_training(self, **changes: Any) -> Plan:
        """The same plan with another recipe."""
        return replace(self, training=replace(self.training, **changes))


def plan_of(options: Mapping[str, Any]) -> Plan:
    """The plan of the options; how many steps it takes is worked out when the data is read."""
    _check_dev(options)
    kind = task_named(options["task"])
    features = parse_layers(options["features"])
    layered = options["head"] not in (None, "linear")
    keep = (options["keep"] or "best") if options["dev"] else "last"
    head_rate = HEAD_RATE if layered and not features else None
    return Plan(
        **{name: options[name] for name in (*SAME, *TASK_FIELDS, "epochs", "budget") if name != "features"},
        columns=Columns(options["text"], options["pair"], options["label"]),
        limit=options["limit"] or 0,
        features=features,
        head_rate=_given(options["head_rate"], head_rate),
        batch_size=_given(options["batch_size"], TOKENS if options["by_tokens"] else EXAMPLES),
        keep=keep,
        training=TrainingConfig(
            steps=1,
            learning_rate=_given(options["learning_rate"], HEAD_RATE if features else RATE),
            warmup=options["warmup"],
            weight_decay=options["weight_decay"],
            portions=options["portions"],
            precision=options["precision"],
            seed=options["seed"],
            eps=1e-8,
            eval_every=options["eval_every"],
            checkpoint_every=options["checkpoint_every"],
            best=_metric(kind, options["metric"]) if options["dev"] else None,
            higher_is_better=_metric(kind, options["metric"]) not in kind.errors,
            patience=options["patience"],
            restore_best=keep == "best",
        ),
    )


def _given(value: Any, default: Any) -> Any:
    return default if value is None else value


def _check_dev(options: Mapping[str, Any]) -> None:
    """Refuse options that would have no effect because nothing is evaluated."""
    idle = [name for name in ("metric", "patience", "eval_every") if options[name] and not options["dev"]]
    idle += ["keep"] if options["keep"] == "best" and not options["dev"] else []
    if idle:
        option = idle[0].replace("_", "-")
        raise HeedfulError(f"--{option} has no effect without dev data", remedy="give --dev FILE, or leave it out")


def _metric(kind: type[Task[Any]], asked: str | None) -> str:
    """The score that decides; a task of one's own may not tell beforehand which scores it has."""
    if asked is not None and kind.scores and asked not in kind.scores:
        raise HeedfulError(f"{kind.name} has no score {asked!r}", remedy=f"the scores are {', '.join(kind.scores)}")
    return asked or kind.best


def parse_layers(text: str | None) -> tuple[int, ...]:
    """Read `-1,-2,-3,-4`."""
    if not text:
        return ()
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise HeedfulError(f"--features {text} is not understood", remedy="write layers as -1,-2,-3,-4") from error
