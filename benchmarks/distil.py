"""A student of all-MiniLM-L6-v2 after half an hour of raw lines: its vectors beside people's judgements, and SST-2.

    python benchmarks/distil.py [--folder FOLDER] [--budget 30m] [--size mini] [--seeds 5] [--rows 2000] [--lines N]

The lines are sentences of 5 to 40 words of the English Wikipedia; nobody has labelled them, and the teacher's time is
part of the budget. STS-B dev is looked at once, at the end. SST-2: the first rows of the training file, the last
weights, from the student and from random weights in its shape; each has the best of three learning rates on the
thousand training rows after those, never on dev. A folder that is named is gone on with.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from judged_vectors import judged
from materials import minilm, table, written_sentences
from results_file import RESULTS, Table, write_results
from transfer_tables import interval

import heedful
from heedful.checkpoints.encoder_folder import load_encoder
from heedful.checkpoints.folder import read_folder

RATES = (1e-4, 3e-4, 1e-3)
CHOOSING = 1000  # rows on which a rate is chosen
NEVER = 10**6  # steps between evaluations: only that at the end remains


def main() -> None:
    """Distil, measure, write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--budget", default="30m")
    parser.add_argument("--size", default="mini")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--lines", type=int, help="as many at most, for a trial")
    parser.add_argument("--output", type=Path, default=RESULTS / "distil.json")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        measure(folder, asked)


def measure(folder: Path, asked: argparse.Namespace) -> None:
    """The whole measurement, in a folder."""
    lines = written_sentences(folder / "lines.txt", asked.lines)
    told = {"size": asked.size, "budget": asked.budget, "resume": True}
    run = heedful.distil(minilm(), folder / "run", train=lines, **told)
    student = run.model
    places = {"teacher": minilm(), "student": student, "student before it learns": folder / "run" / "start"}
    agreement = [[name, parameters(place), judged(place, "stsb/dev.tsv")] for name, place in places.items()]
    scores = transfer(folder, student, asked.rows, asked.seeds)
    gains = [ours - random for ours, random in zip(scores["student"], scores["random"], strict=True)]
    write_results(
        asked.output,
        "Distilling",
        f"BERT-{asked.size} distilled from all-MiniLM-L6-v2 on raw lines of Wikipedia, {asked.budget} in all: "
        f"STS-B dev without labels, and SST-2 from {asked.rows:,} rows",
        [
            Table(["vectors of", "parameters", "STS-B dev, Spearman"], agreement),
            Table(
                ["SST-2 from", "learning rate", "accuracy, mean", "least … most"],
                [[name, scores[f"rate of {name}"], *spread(scores[name])] for name in ("student", "random")],
            ),
        ],
        [
            f"Student minus random weights, by seed: {', '.join(f'{100 * gain:+.1f}' for gain in gains)} points; "
            f"on average {interval(gains)}, Student's 95 % interval."
        ],
        more={"teacher_cosine_held_out": round(run.scores["teacher_cosine"], 4), **training(run)},
    )


def transfer(folder: Path, student: Path, rows: int, seeds: int) -> dict[str, Any]:
    """Accuracies on SST-2 dev from the student and from random weights, by seed, and the rates they had."""
    every, dev = table("sst2/train.tsv.gz"), table("sst2/dev.tsv")
    train, choosing = every[:rows], every[rows : rows + CHOOSING]
    found: dict[str, Any] = {}
    for name in ("student", "random"):
        how = {
            "random_weights": name == "random",
            "pooling": "mean",
            "max_length": 64,
            "keep": "last",
            "eval_every": NEVER,
        }
        tried = {
            rate: tuned(folder / f"{name}-{rate}", student, train, choosing, learning_rate=rate, **how)
            for rate in RATES
        }
        best = max(tried, key=tried.__getitem__)
        found[f"rate of {name}"] = best
        found[name] = [
            tuned(folder / f"{name}-seed-{seed}", student, train, dev, learning_rate=best, seed=seed, **how)
            for seed in range(1, seeds + 1)
        ]
    return found


def tuned(folder: Path, model: Path, train: Sequence[Any], dev: Sequence[Any], **how: Any) -> float:
    """The accuracy of a classifier."""
    run = heedful.finetune("classify", model=model, train=train, dev=dev, output=folder, epochs=3, resume=True, **how)
    return float(run.scores["accuracy"])


def parameters(model: Path) -> int:
    """Of the encoder, its pooler apart."""
    encoder = load_encoder(read_folder(model)).without_pooler()
    return sum(parameter.numel() for parameter in encoder.parameters())


def spread(values: Sequence[float]) -> list[str]:
    """Their mean, and the least and most, as percentages."""
    return [f"{statistics.mean(values):.1%}", f"{min(values):.1%} … {max(values):.1%}"]


def training(run: heedful.Run) -> Mapping[str, Any]:
    """What the student had: texts, steps and tokens."""
    last = [row for row in run.metrics if "tokens" in row][-1]
    answers = np.load(run.folder / "teacher" / "answers.npy", mmap_mode="r")
    return {
        "lines_read_by_the_teacher": len(answers),
        "steps": last["step"],
        "tokens_read_by_the_student": last["tokens"],
    }


if __name__ == "__main__":
    main()
