"""The model card: a README.md in the model folder that says what the model is and what it was measured to do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from heedful.atomic import atomic_file
from heedful.checkpoints.families import family_named
from heedful.data.corpus.corpus import Corpus
from heedful.runs.pretraining.plan import Plan, told_phase
from heedful.tasks.pretraining_objective import PretrainingObjective
from heedful.training.distributed import own_device
from heedful.training.processor import told_place

USE = """
## Use

{use}

{peer}It has learned from the text above and nothing else, with all the
gaps and leanings of that text; vectors of a model that was only pretrained compare texts poorly until it is tuned.
"""
PEER = "In `transformers` it loads as `{}`. "


def write_card(
    folder: Path, plan: Plan, corpus: Corpus, objective: PretrainingObjective, metrics: Mapping[str, float]
) -> None:
    """Write the card of a pretrained model."""
    shape, training, family = plan.model, plan.training, family_named(plan.model.model_type)
    peer = family.classes.get("PreTraining")
    name = family.config.name
    lines = [
        f"# {name}, pretrained with heedful",
        "",
        f"{shape.described}, {shape.vocab_size} pieces; started from {plan.start or f'{plan.init} weights'}.",
        "",
        "## Training",
        "",
        *(f"- {steps} steps of {told_phase(p)}" for p, steps in zip(plan.stretches, plan.steps, strict=True)),
        f"- {objective.described(plan.recipe)}",
        f"- learning rate {training.learning_rate}, warm-up {training.warmup}, weight decay {training.weight_decay}",
        f"- dropout {shape.dropout}, clipping {training.clip}, seed {training.seed}",
        f"- computed {told_place(own_device(), training.precision)}",
        f"- text: {corpus.train.documents:,} documents, {corpus.train.tokens:,} tokens",
        "",
        "## On held-out documents",
        "",
        "| what | value |",
        "|---|---|",
        *(f"| {name} | {value:.4f} |" for name, value in metrics.items()),
    ]
    with atomic_file(folder / "README.md") as file:
        file.write("\n".join(lines) + "\n" + USE.format(use=objective.use, peer=PEER.format(peer) if peer else ""))
