"""The model card of a translation model: what it is, what it was trained on, and how well it did on dev."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from heedful.atomic import atomic_file
from heedful.models.seq2seq_config import Seq2SeqConfig
from heedful.models.transformer import TransformerConfig
from heedful.runs.translation.plan import Plan
from heedful.training.distributed import own_device
from heedful.training.processor import told_place

USE = """
## Use

    heedful translate run FOLDER input.txt
    heedful translate score FOLDER pairs.tsv

It has learned from the pairs above and nothing else: texts of another kind it translates poorly.
"""


def write_translation_card(
    folder: Path,
    plan: Plan,
    parameters: int,
    pairs: int,
    scores: Mapping[str, float],
    signatures: Mapping[str, str],
) -> None:
    """Write README.md into the model folder."""
    training, files = plan.training, ", ".join(f"`{Path(file).name}`" for file in plan.train)
    lines = [
        f"# {plan.source} → {plan.target}, trained with heedful",
        "",
        f"- {described(plan.shape)}; {parameters:,} parameters",
        f"- {'one vocabulary' if plan.shape.share else 'two vocabularies'}: {plan.shape.source_vocab_size:,} pieces of "
        f"the source, {plan.shape.target_vocab_size:,} of the target",
        f"- trained on {files}: {pairs:,} pairs, {training.steps:,} steps of about {plan.batch_size:,} tokens",
        f"- learning rate {training.learning_rate:.3g} ({training.schedule}), label smoothing {plan.label_smoothing}, "
        f"dropout {plan.shape.dropout}, seed {training.seed}",
        f"- computed {told_place(own_device(), training.precision)}",
        "",
    ]
    if scores:
        decoded = "greedily" if plan.beam == 1 else f"with a beam of {plan.beam}"
        lines += [f"## On `{Path(plan.dev[0]).name}`, decoded {decoded}", "", "| what | value | by |", "|---|---|---|"]
        lines += [f"| {name} | {value:.4f} | {_by(signatures.get(name))} |" for name, value in scores.items()]
        lines += ["", f"The weights were chosen by {training.best}."]
    with atomic_file(folder / "README.md") as file:
        file.write("\n".join(lines).rstrip() + "\n" + USE)


def described(shape: TransformerConfig | Seq2SeqConfig) -> str:
    """The shape of a model in a few words."""
    if isinstance(shape, Seq2SeqConfig):
        directions = "two directions" if shape.bidirectional else "one direction"
        return f"{shape.cell.upper()} of width {shape.hidden_size}, {directions}, decoder {shape.decoder}"
    encoder = "a BERT" if shape.encoder is not None else f"{shape.encoder_layers} layers"
    layers = f"encoder of {encoder}, decoder of {shape.decoder_layers} layers"
    return f"Transformer: {layers}, width {shape.width}, {shape.heads} heads, feed-forward {shape.inner}"


def _by(signature: str | None) -> str:
    return f"sacreBLEU `{signature.replace('|', ' ')}`" if signature else ""
