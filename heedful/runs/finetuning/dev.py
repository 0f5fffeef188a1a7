"""Evaluation on the dev data while a run goes on, by the same steps as `heedful evaluate`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from heedful.inference.workers import worker_pool
from heedful.runs.finetuning.material import Material
from heedful.runs.judge import Judge
from heedful.tasks.blind_guess import blind_guess_remark
from heedful.tasks.items import Known, outputs_of
from heedful.tasks.task import Task


@dataclass(frozen=True)
class Judged:
    """How good a model's answers to the dev examples are, and the task with what dev tells of it for this model."""

    task: Task[Any]
    scores: Mapping[str, float]


class Dev(Judge[Judged]):
    """Judges a model by its answers to the dev examples."""

    def __init__(self, material: Material, known: Known | None) -> None:
        super().__init__()
        assert material.dev is not None
        self.task, self.dev, self.items = material.task, material.dev.examples, material.dev_items
        self.known = known

    def judge(self, model: nn.Module) -> Judged:
        """The scores, with whatever the task can tune on dev tuned for this model: so are those of the kept one."""
        with worker_pool() as pool:
            outputs = outputs_of(model, self.items, pool.map, self.known)
        predictions = self.task.decode(model, self.dev, self.items, outputs)
        tuned = self.task.tuned(self.dev, predictions)
        if tuned != self.task:
            predictions = tuned.decode(model, self.dev, self.items, outputs)
        return Judged(tuned, tuned.score(self.dev, predictions))

    def remark(self, decides: str | None) -> str | None:
        """Whether one answer for all examples would have done as well."""
        if self.kept is None or decides is None:
            return None
        return blind_guess_remark(self.kept.task, self.dev, self.kept.scores, decides)
