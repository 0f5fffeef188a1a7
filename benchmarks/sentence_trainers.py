"""Fine-tuning sentence vectors: all-MiniLM-L6-v2 on SICK's scored pairs, ours beside sentence-transformers.

    HEEDFUL_DATA=… python benchmarks/sentence_trainers.py [--rounds 3] [--epochs 2]

The same pairs, loss (the squared error of cosines), batch size, steps, optimiser, rates and float32 for both, in
turns. A time is that from the folder of the model to the folder of the trained one; nothing is evaluated meanwhile.
Sentence-transformers' newer trainer needs `accelerate` and `datasets`, so its own training loop (`old_fit`) is the one
that is measured. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sentence_transformers
import torch
from judged_vectors import judged
from materials import minilm, table
from results_file import RESULTS, Table, load, write_results
from sentence_transformers import InputExample, SentenceTransformer
from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss
from torch.utils.data import DataLoader

import heedful

RATE, WARMUP, DECAY, TOP = 2e-5, 0.1, 0.01, 5.0
Trainer = Callable[[list[dict[str, str]], Path, argparse.Namespace, int], int]


def main() -> None:
    """Train by both in turns, and write what came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--limit", type=int, help="pairs at most, for a trial")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "sentence_trainers.json")
    asked = parser.parse_args()
    busy = load()
    rows = table("sick/train.tsv")[: asked.limit]
    trainers: dict[str, Trainer] = {
        "heedful": ours,
        f"sentence-transformers {sentence_transformers.__version__}": theirs,
    }
    seconds: dict[str, list[float]] = {name: [] for name in trainers}
    scores: dict[str, list[float]] = {name: [] for name in trainers}
    steps: dict[str, int] = {}
    for seed in range(1, asked.rounds + 1):
        for name, train in trainers.items():
            with tempfile.TemporaryDirectory() as scratch:
                folder, start = Path(scratch) / "model", time.perf_counter()
                steps[name] = train(rows, folder, asked, seed)
                seconds[name].append(time.perf_counter() - start)
                scores[name].append(judged(folder, "sick/dev.tsv"))
            print(name, f"{seconds[name][-1]:.1f} s, Spearman {scores[name][-1]}", flush=True)
    report(asked, rows, seconds, scores, steps, busy)


def report(asked: argparse.Namespace, rows: Any, seconds: Any, scores: Any, steps: Any, busy: str) -> None:
    """Write the results."""
    ratios = [own / other for own, other in zip(*seconds.values(), strict=True)]
    means = [statistics.mean(found) for found in scores.values()]
    shown = [
        [name, steps[name], f"{statistics.median(seconds[name]):.1f}", f"{statistics.mean(found):.4f}",
         f"{min(found):.4f} … {max(found):.4f}"]
        for name, found in scores.items()
    ]  # fmt: skip
    write_results(
        asked.output,
        "Training sentence vectors, beside sentence-transformers",
        f"all-MiniLM-L6-v2 on {len(rows):,} scored pairs of SICK, {asked.epochs} epochs, batches of "
        f"{asked.batch_size}, learning rate {RATE:g}, float32, {torch.get_num_threads()} threads; Spearman on SICK "
        f"dev; {asked.rounds} seeds",
        [Table(["trainer", "steps", "seconds, median", "Spearman, mean", "least … most"], shown)],
        [
            f"Time, ours / theirs: {statistics.median(ratios):.2f} ({min(ratios):.2f} … {max(ratios):.2f}); Spearman, "
            f"ours − theirs: {means[0] - means[1]:+.4f}; before training {judged(minilm(), 'sick/dev.tsv')}.",
            f"Their loop is `old_fit`, with dynamic padding. {busy[0].upper()}{busy[1:]}.",
        ],
        more={"seconds": {name: [round(one, 2) for one in found] for name, found in seconds.items()}},
    )


def ours(rows: list[dict[str, str]], folder: Path, asked: argparse.Namespace, seed: int) -> int:
    """Train by heedful, and give the number of steps."""
    run = heedful.finetune(
        "embed",
        model=minilm(),
        train=rows,
        label="relatedness",
        output=folder.with_name("run"),
        epochs=asked.epochs,
        batch_size=asked.batch_size,
        learning_rate=RATE,
        warmup=WARMUP,
        weight_decay=DECAY,
        precision="float32",
        checkpoint_every=0,
        seed=seed,
        progress=False,
    )
    run.model.rename(folder)
    return int(run.metrics[-1]["step"])


def theirs(rows: list[dict[str, str]], folder: Path, asked: argparse.Namespace, seed: int) -> int:
    """Train by sentence-transformers."""
    torch.manual_seed(seed)
    model = SentenceTransformer(str(minilm()), device="cpu")
    pairs = [
        InputExample(texts=[row["sentence1"], row["sentence2"]], label=float(row["relatedness"]) / TOP) for row in rows
    ]
    batches: Any = DataLoader(pairs, shuffle=True, batch_size=asked.batch_size)  # type: ignore[arg-type]
    steps = int(asked.epochs * len(batches))
    model.old_fit(
        [(batches, CosineSimilarityLoss(model))],
        epochs=asked.epochs,
        warmup_steps=math.ceil(WARMUP * steps),
        optimizer_params={"lr": RATE},
        weight_decay=DECAY,
        show_progress_bar=False,
    )
    model.save(str(folder))
    return steps


if __name__ == "__main__":
    main()
