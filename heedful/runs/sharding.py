"""What `shard` does not go with, told before any data is read."""

from __future__ import annotations

import os
from typing import Any

from heedful.errors import HeedfulError
from heedful.runs.budget import parse_budget
from heedful.tasks.registry import task_named


def check_sharding(settings: Any, resume: bool) -> None:
    """Refuse settings that a model in slices cannot follow, and a run that has nobody to share it with.

    A process alone may go on with a run of many, for a checkpoint has all slices.
    """
    if not getattr(settings, "shard", False):
        return
    if settings.budget and parse_budget(settings.budget).seconds:
        what = "a `budget` of time is measured with the whole model on one device, which `shard` is there to avoid"
        raise HeedfulError(what, remedy="give steps, as 20000steps, or epochs")
    if getattr(settings, "features", ()):
        what = "`features` are computed by the whole model in each process, which `shard` is there to avoid"
        raise HeedfulError(what, remedy="leave `shard` out: a head on a frozen encoder is small")
    if hasattr(settings, "task_name") and task_named(settings.task_name).whole_batch:
        what = f"{settings.task} does not go with `shard`: the loss of a text is that of its whole batch"
        raise HeedfulError(what, remedy="train in one process; `accumulate` makes room for large batches")
    if "WORLD_SIZE" not in os.environ and not resume:
        what = "`shard` gives each process of torchrun a slice of the model, and this process is alone"
        remedy = "let torchrun start several of it, as docs/scale.md shows, or leave `shard` out"
        raise HeedfulError(what, remedy=remedy)
