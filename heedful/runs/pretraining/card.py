"""The model card: a README.md in the model folder that says what the model is and what it was measured to do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from heedful.atomic import atomic_file
from heedful.data.corpus.corpus import Corpus
from heedful.runs.pretraining.plan import Plan

USE = """
## Use

    heedful fill FOLDER "some text with a [MASK] in it"
    heedful embed FOLDER lines.txt -o vectors.npy

In `transformers` it loads as `BertForPreTraining`. It has learned from the text above and nothing else, with all the
gaps and leanings of that text; vectors of a model that was only pretrained compare texts poorly until it is tuned.
"""


def write_card(folder: Path, plan: Plan, corpus: Corpus, metrics: Mapping[str, float]) -> None:
    """Write the card of a pretrained model."""
    shape, recipe, training = plan.model, plan.recipe, plan.training
    phases = zip(plan.lengths, plan.steps, plan.batch_sizes, strict=True)
    lines = [
        "# A BERT pretrained with heedful",
        "",
        f"{shape.described}, {shape.vocab_size} pieces; started from {plan.start or 'random weights'}.",
        "",
        "## Training",
        "",
        *(f"- {steps} steps of {size} examples of up to {length} tokens" for length, steps, size in phases),
        f"- masked language model: {recipe.masking} masking, {recipe.rate:.0%}; pairs: {recipe.pairs}",
        f"- learning rate {training.learning_rate}, warm-up {training.warmup}, weight decay {training.weight_decay}",
        f"- dropout {shape.dropout}, clipping {training.clip}, seed {training.seed}",
        f"- text: {corpus.train.documents:,} documents, {corpus.train.tokens:,} tokens",
        "",
        "## On held-out documents",
        "",
        "| what | value |",
        "|---|---|",
        *(f"| {name} | {value:.4f} |" for name, value in metrics.items()),
    ]
    with atomic_file(folder / "README.md") as file:
        file.write("\n".join(lines) + "\n" + USE)
