"""Evaluation on the dev data while a run goes on, by the same steps as `heedful evaluate`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from heedful.cli.finetune_material import Material
from heedful.inference.workers import worker_pool
from heedful.tasks.items import Known, outputs_of
from heedful.tasks.task import Task


@dataclass(frozen=True)
class Judged:
    """How good a model's answers to the dev examples are, and the task with what dev tells of it for this model."""

    task: Task[Any]
    scores: Mapping[str, float]


class Dev:
    """Judges a model each time it is asked; `kept` is what it said of the weights that the run ends with."""

    def __init__(self, material: Material, known: Known | None) -> None:
        assert material.dev is not None
        self.task, self.examples, self.items = material.task, material.dev.examples, material.dev_items
        self.known = known
        self.last: Judged | None = None
        self.kept: Judged | None = None

    def evaluate(self, model: nn.Module) -> Mapping[str, float]:
        """The scores, with whatever the task can tune on dev tuned for this model: so are those of the kept one."""
        with worker_pool() as pool:
            outputs = outputs_of(model, self.items, pool.map, self.known)
        predictions = self.task.decode(model, self.examples, self.items, outputs)
        tuned = self.task.tuned(self.examples, predictions)
        if tuned != self.task:
            predictions = tuned.decode(model, self.examples, self.items, outputs)
        self.last = Judged(tuned, tuned.score(self.examples, predictions))
        return self.last.scores

    def judged(self, model: nn.Module) -> Judged:
        """The judgement of the weights that are kept; they are asked again only if a resumed run has not heard it."""
        if self.kept is None:
            self.evaluate(model.eval())
            self.kept = self.last
        assert self.kept is not None
        return self.kept
