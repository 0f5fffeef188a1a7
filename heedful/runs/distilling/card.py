"""The model card of a student: who taught it, what it has read, and how close it came."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from heedful.atomic import atomic_file
from heedful.models.encoder import EncoderConfig
from heedful.runs.distilling.plan import Plan
from heedful.training.distributed import own_device
from heedful.training.processor import told_place

USE = {
    "vectors": "    heedful similarity FOLDER TEXT TEXT\n    heedful embed FOLDER lines.txt -o vectors.npy\n",
    "answers": "    heedful predict FOLDER input.tsv\n    heedful evaluate FOLDER labelled.tsv\n",
}


def write_student_card(
    folder: Path, plan: Plan, config: EncoderConfig, learned: str, scores: Mapping[str, float]
) -> None:
    """Write README.md into the model folder."""
    training = plan.training
    started = f"the weights of `{Path(plan.student).name}`" if plan.student else f"what it has of its {plan.start}"
    started = "random weights" if not plan.student and plan.start == "random" else started
    lines = [
        f"# A model distilled with heedful: the {learned} of `{Path(plan.teacher).name}`",
        "",
        f"- {config.described}, {config.vocab_size:,} pieces; started from {started}",
        f"- learned from {plan.texts:,} texts of `{Path(plan.train).name}`",
        f"- {training.steps:,} steps of {plan.batch_size} texts",
        *([f"- and from the labels of `{Path(plan.labelled).name}`"] if plan.labelled else []),
        f"- learning rate {training.learning_rate}, seed {training.seed}; the {plan.keep} weights were kept",
        f"- computed {told_place(own_device(), training.precision)}",
        "",
        "| what | value |",
        "|---|---|",
        *(f"| {name} | {value:.4f} |" for name, value in scores.items()),
    ]
    with atomic_file(folder / "README.md") as file:
        file.write("\n".join(lines) + "\n\n## Use\n\n" + USE[learned])
