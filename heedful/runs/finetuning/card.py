"""The model card of a fine-tuned model: what it does, what it was trained on and how well it did on dev."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from heedful.atomic import atomic_file
from heedful.data.labelled.dataset import Dataset
from heedful.data.labelled.dev_split import share_of
from heedful.runs.finetuning.dev import Judged
from heedful.runs.finetuning.plan import Plan
from heedful.training.distributed import own_device
from heedful.training.processor import told_place

USE = """
## Use

    heedful predict FOLDER input.tsv
    heedful evaluate FOLDER labelled.tsv
"""


def write_task_card(folder: Path, plan: Plan, train: Dataset[Any], judged: Judged) -> None:
    """Write README.md into the model folder."""
    training, scores, rule = plan.training, judged.scores, judged.task.rule
    started = "random weights in the shape of" if plan.random_weights else "the weights of"
    unit = "tokens" if plan.by_tokens else "examples"
    lines = [
        f"# A model fine-tuned with heedful: {plan.task}",
        "",
        f"- started from {started} `{Path(plan.model).name}`",
        f"- trained on `{Path(plan.train).name}`: {len(train.examples):,} examples, {training.steps} steps",
        f"- learning rate {training.learning_rate}, batches of {plan.batch_size} {unit}",
        f"- seed {training.seed}; the {plan.keep} weights were kept",
        f"- computed {told_place(own_device(), training.precision)}",
        *([f"- {rule}: other programs do not know it"] if rule else []),
        "",
    ]
    if scores and plan.dev:
        dev = f"{plan.dev} of the training data" if share_of(plan.dev) else f"`{Path(plan.dev).name}`"
        lines += [f"## On {dev}", "", "| what | value |", "|---|---|"]
        lines += [f"| {name} | {value:.4f} |" for name, value in scores.items()]
        lines += ["", "The best checkpoint was chosen by these scores." if plan.keep == "best" else ""]
    with atomic_file(folder / "README.md") as file:
        file.write("\n".join(lines).rstrip() + "\n" + USE)
