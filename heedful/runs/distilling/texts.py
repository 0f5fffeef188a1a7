"""The texts of a distilling run: what the teacher is asked about, in the order of its answers.

    labelled | held out | lines …        of the lines the last may be left out, if the teacher's time is limited

Lines and held-out texts are drawn by the seed, so that those of a large file come from all over it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from heedful.data.labelled.dataset import Dataset
from heedful.errors import HeedfulError
from heedful.runs.distilling.lesson import Lesson
from heedful.runs.distilling.plan import columns_of
from heedful.runs.distilling.settings import DistillingSettings
from heedful.text.encodings import reading_as

FEWEST = 20  # texts, below which nothing can be learned
FEW = 1000  # below which it is told that more would help
HELD_OUT_SHARE = 0.1


@dataclass(frozen=True)
class Texts:
    """The examples of a run, and its dev data."""

    labelled: list[Any]
    held_out: list[Any]
    lines: list[Any]
    dev: Dataset[Any] | None
    remarks: list[str]

    @classmethod
    def of(cls, settings: DistillingSettings, lesson: Lesson) -> Texts:
        """Read all of it as the settings say."""
        with reading_as(settings.encoding):
            train = lesson.read(settings.train, columns_of(settings))
            labelled, dev = (_labelled(data, settings, lesson) for data in (settings.labelled, settings.dev))
        lines = train.examples
        if len(lines) < FEWEST:
            what, remedy = f"{len(lines)} different texts are too few to learn from", "give thousands of them"
            raise HeedfulError(what, where=settings.train, remedy=remedy)
        order = np.random.default_rng(settings.seed).permutation(len(lines))[: settings.limit].tolist()
        few = max(1, min(settings.held_out, int(HELD_OUT_SHARE * len(order))))
        remarks = [f"train: {remark}" for remark in train.remarks]
        if len(order) < FEW:
            remarks.append(f"{len(order):,} texts are few: a student follows its teacher the better the more it reads")
        for name, data in (("labelled", labelled), ("dev", dev)):
            remarks += [f"{name}: {remark}" for remark in data.remarks] if data else []
        held_out, kept = ([lines[number] for number in numbers] for numbers in (order[:few], order[few:]))
        return cls(list(labelled.examples) if labelled else [], held_out, kept, dev, remarks)

    @property
    def asked(self) -> list[Any]:
        """What the teacher is asked about."""
        return [*self.labelled, *self.held_out, *self.lines]

    @property
    def first(self) -> int:
        """How many of them come before the lines."""
        return len(self.labelled) + len(self.held_out)

    def answered(self, count: int) -> Texts:
        """The texts that have an answer, of which there are so many."""
        return Texts(self.labelled, self.held_out, self.lines[: count - self.first], self.dev, self.remarks)

    def place(self, number: int) -> int:
        """The row of the answer to a training example: the labelled ones and then the lines."""
        return number if number < len(self.labelled) else number + len(self.held_out)


def _labelled(data: Any, settings: DistillingSettings, lesson: Lesson) -> Dataset[Any] | None:
    if data is None:
        return None
    task = lesson.task
    found = task.read_data(data, columns_of(settings))
    if not found.examples:
        raise HeedfulError("there are no rows", where=data, remedy="give rows, or leave it out")
    task.check(found.examples)
    return Dataset(found.examples, (*found.remarks, *task.unseen(found.examples)))
