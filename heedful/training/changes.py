"""What is other about a run that is gone on with, and whether it may be: a run may become longer, not another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# How long a run is, how often it looks up from its work, and where its numbers lie.
LENGTH = ("epochs", "budget")
MAY_CHANGE = (*LENGTH, "eval_every", "checkpoint_every", "patience", "shard")


@dataclass(frozen=True)
class Change:
    """A field of a run's config that has another value now."""

    name: str  # with dots, from the outermost config on
    old: Any
    new: Any

    @property
    def leaf(self) -> str:
        """The name of the field itself."""
        return self.name.rpartition(".")[2]

    def __str__(self) -> str:
        return f"{self.name} was {self.old!r}, is now {self.new!r}"


def changes_of(stored: Any, given: Any, prefix: str = "") -> list[Change]:
    """The fields in which two configs of one kind differ."""
    found = []
    for name in vars(stored):
        old, new = getattr(stored, name), getattr(given, name)
        if old != new and hasattr(old, "__dataclass_fields__") and type(old) is type(new):
            found += changes_of(old, new, f"{prefix}{name}.")
        elif old != new:
            found.append(Change(f"{prefix}{name}", old, new))
    return found


def refused(changes: Sequence[Change], schedule: str) -> list[Change]:
    """The changes that would make it another run.

    Steps follow from the length that was asked for: where that is the same and they are not, the data is another. The
    peak of the Transformer's schedule follows from the warm-up, and that from the steps.
    """
    longer = any(change.leaf in LENGTH for change in changes)
    follows = ["steps", *(["learning_rate"] if schedule == "inverse_sqrt" else [])]
    allowed = {*MAY_CHANGE, *(follows if longer else [])}
    return [change for change in changes if change.leaf not in allowed]


def in_words(changes: Sequence[Change]) -> str:
    """What is told of changes that are allowed."""
    told = "; ".join(map(str, changes))
    if not any(change.leaf == "steps" for change in changes):
        return told
    return (
        f"{told}: from here on the learning rate follows the schedule of the new length, and the weights will not be "
        "those of a run that had it from the start"
    )
