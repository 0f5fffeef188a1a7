"""Whether the mean of a pretraining run's last checkpoints is better than the last one: held-out loss at 15 % masked.

    python benchmarks/averaged_checkpoints.py CORPUS MODEL CHECKPOINT CHECKPOINT …

The checkpoints of a run in their order (a run keeps two of them: copy them as they come), and its finished MODEL. They
are judged as `pretrain_recipe.py` does.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch
from results_file import RESULTS, Table, write_results

from heedful.checkpoints.encoder_folder import load_for_pretraining
from heedful.checkpoints.folder import read_folder
from heedful.checkpoints.own_weights import averaged, weights_of
from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.examples import Recipe
from heedful.data.corpus.source import held_out_micro_batches
from heedful.tasks.masked_objective import held_out_examples
from heedful.tasks.pretraining import evaluate


def main() -> None:
    """The loss of the last checkpoint, and of the mean of the last two, three …"""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("checkpoints", nargs="+", type=Path)
    asked = parser.parse_args()
    examples = held_out_examples(Corpus.open(asked.corpus), Recipe(max_length=128, pairs="none"))
    model = load_for_pretraining(read_folder(asked.model), seed=0).eval()

    def loss(some: Sequence[Path]) -> float:
        means = averaged([one / "weights" for one in some])
        with torch.no_grad():
            for name, weights in weights_of(model).items():
                weights.copy_(means[name])
            return round(evaluate(model, held_out_micro_batches(examples, 32, 512))["mlm_loss"], 4)

    last = [asked.checkpoints[-count:] for count in range(1, 1 + len(asked.checkpoints))]
    write_results(
        RESULTS / "averaged_checkpoints.json",
        "The mean of the last checkpoints",
        "Held-out loss of a pretrained BERT, of its last weights and of the mean of its last checkpoints; 15 % masked, "
        "128 tokens, no pairs",
        [Table(["checkpoints", "loss"], [[", ".join(one.name for one in some), loss(some)] for some in last])],
        arguments="CORPUS MODEL CHECKPOINT …",
    )


if __name__ == "__main__":
    main()
