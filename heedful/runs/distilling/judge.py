"""Evaluation while a student learns: on dev data as in fine-tuning, and how close it is to its teacher."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from heedful.inference.workers import worker_pool
from heedful.runs.distilling.lesson import Lesson
from heedful.runs.finetuning.dev import Dev, Judged
from heedful.runs.judge import Judge
from heedful.tasks.items import outputs_of
from heedful.tasks.task import Item


class BesideTeacher(Judge[Judged]):
    """Judges a student by its answers to dev examples, if there are any, and by held-out texts that both have read."""

    def __init__(self, lesson: Lesson, items: Sequence[Item], taught: Tensor, dev: Dev | None) -> None:
        super().__init__()
        self.lesson, self.items, self.taught, self.dev = lesson, items, taught, dev

    def judge(self, model: nn.Module) -> Judged:
        """The scores of both."""
        judged = self.dev.judge(model) if self.dev else Judged(self.lesson.task, {})
        with worker_pool() as pool:
            outputs = [windows[0][0] for windows in outputs_of(model, self.items, pool.map)]
        close = self.lesson.closeness(torch.stack(outputs).float(), self.taught)
        return Judged(judged.task, {**judged.scores, **close})
