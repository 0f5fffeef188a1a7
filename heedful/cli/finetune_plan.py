"""What a fine-tuning run will do, worked out from its options before anything is trained, and kept in config.toml."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from heedful.data.labelled import Columns
from heedful.errors import HeedfulError
from heedful.training.training_config import TrainingConfig

# The options that are fields of a task, where the task has such a field.
TASK_FIELDS = ("max_length", "stride", "head", "features", "combine", "lstm_width", "lstm_layers")


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
    batch_size: int = 32
    by_tokens: bool = False
    epochs: float = 3.0
    budget: str | None = None  # instead of epochs
    keep: str = "best"

    def __post_init__(self) -> None:
        if self.keep not in ("best", "last"):
            raise HeedfulError(f"--keep {self.keep} is not understood", remedy="write best or last")
        if self.epochs <= 0:
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


def parse_layers(text: str | None) -> tuple[int, ...]:
    """Read `-1,-2,-3,-4`."""
    if not text:
        return ()
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise HeedfulError(f"--features {text} is not understood", remedy="write layers as -1,-2,-3,-4") from error
