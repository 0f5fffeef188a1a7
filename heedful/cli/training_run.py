"""What every command that trains does around its trainer: look at the machine, count steps, tell how it ended."""

from __future__ import annotations

import os
from typing import TypeVar

import torch
from torch import nn

from heedful.cli.pretrain_plan import parse_budget
from heedful.cli.progress import clock
from heedful.cli.training_display import TrainingDisplay
from heedful.config import read_toml
from heedful.errors import HeedfulError
from heedful.training.budget import steps_for
from heedful.training.contract import Objective, Source
from heedful.training.events import Note, Outcome
from heedful.training.loss_remark import loss_remark
from heedful.training.run_folder import RunFolder
from heedful.training.trainer import Trainer
from heedful.training.training_config import TrainingConfig
from heedful.views.report import write_report

P = TypeVar("P")


def first_process() -> bool:
    """Whether this process is the one that speaks, of those torchrun has started."""
    return os.environ.get("RANK", "0") == "0"


def processes() -> int:
    """How many processes torchrun has started."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def warn_if_busy(display: TrainingDisplay) -> None:
    """Threads of one product wait for each other, so that one busy core slows the others down to a crawl."""
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if busy > 1.5 and torch.get_num_threads() > 1:
        text = f"the machine is busy (load {busy:.1f}); with OMP_NUM_THREADS=1 a small model may train faster now"
        display.show(Note(text))


def stored_plan(kind: type[P], folder: RunFolder) -> P | None:
    """What an earlier session of this run was told, if there was one."""
    return read_toml(kind, folder.config) if folder.config.exists() else None


def steps_of_budget(text: str, model: nn.Module, objective: Objective, source: Source, training: TrainingConfig) -> int:
    """How many steps a budget such as `30m` or `2000steps` is; a time is measured by a few of them."""
    budget = parse_budget(text)
    if budget.tokens:
        raise HeedfulError("a budget in tokens is for pretraining", remedy="write 30m or 2000steps, or --epochs")
    if budget.seconds:
        return steps_for(budget.seconds, model, objective, source, training)
    return max(1, round(budget.steps))


def tell_end(display: TrainingDisplay, trainer: Trainer, outcome: Outcome) -> None:
    """Write the report, and say how the run ended and where everything is."""
    folder = trainer.folder
    lines = [f"{outcome}, {clock(trainer.clock.wall)} in all", f"report: {write_report(folder.path)}"]
    if outcome.finished:
        lines.append(f"model:  {folder.model}")
    remark = loss_remark(folder.metrics)
    if remark:
        lines.append(f"remark: {remark}")
    display.console.print("\n".join(lines), markup=False, highlight=False)
