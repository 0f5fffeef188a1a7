"""The recipe of pretraining, found one factor at a time: short runs judged by their held-out loss at 15 % masked.

    python benchmarks/pretrain_recipe.py CORPUS [--steps 1500] [--seeds 0] [--factors start,rate] [--at-once 2]

From the best settings so far each factor in turn is tried with all its values, one thread a run, and the best value is
kept before the next factor is tried. With several seeds a value counts by the mean of its losses. Factors that need a
corpus of their own (the vocabulary, whole words) are tried by giving that corpus. What was found is written to
docs/results/pretrain_recipe.json with a line for each run, those that failed too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from results_file import RESULTS, Table, write_results

BEST = {
    "--start": "informed", "--lr": "1e-3", "--batch-size": "16", "--phases": "64:100%", "--mask-rate": "0.3",
    "--pairs": "none", "--dropout": "0", "--warmup": "0.1", "--weight-decay": "0.01", "--set": "initializer_range=0.02",
}  # fmt: skip
FACTORS: dict[str, tuple[str, list[str]]] = {
    "start": ("--start", ["informed", "random"]),
    "rate": ("--lr", ["5e-4", "1e-3", "2e-3", "3e-3"]),
    "warmup": ("--warmup", ["0.02", "0.1", "0.25"]),
    "batch": ("--batch-size", ["8", "16", "32", "64"]),
    "lengths": ("--phases", ["64:100%", "128:100%", "64:80%,128:20%"]),
    "masked": ("--mask-rate", ["0.15", "0.3", "0.4"]),
    "pairs": ("--pairs", ["none", "sop", "nsp"]),
    "spread": ("--set", ["initializer_range=0.02", "initializer_range=0.04", "initializer_range=0.06"]),
    "decay": ("--weight-decay", ["0.0", "0.01", "0.1"]),
}


class Trial(NamedTuple):
    """A run: what was tried, and the loss it ended with."""

    factor: str
    value: str
    seed: int
    loss: float | None
    reason: str = ""  # why there is none


def trial(corpus: str, steps: int, factor: str, value: str, options: dict[str, str], seed: int, size: str) -> Trial:
    """Train in a process of its own with one thread."""
    with tempfile.TemporaryDirectory() as place:
        told = [word for pair in options.items() for word in pair]
        command = [
            *(sys.executable, "-m", "heedful", "pretrain", corpus, "-o", f"{place}/run", "--size", size, *told),
            *("--seed", str(seed), "--budget", f"{steps}steps", "--eval-every", "0", "--checkpoint-every", "0"),
        ]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        metrics = Path(place, "run", "metrics.jsonl")
        if done.returncode or not metrics.exists():
            return Trial(factor, value, seed, None, " ".join(done.stderr.split())[-300:])
        found = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()]
    losses = [line["evaluation"]["mlm_loss"] for line in found if "evaluation" in line]
    return Trial(factor, value, seed, losses[-1])


def mean_loss(trials: list[Trial]) -> float:
    """The mean over seeds; a run that failed makes its value the worst."""
    return sum(t.loss for t in trials if t.loss is not None) / len(trials) if all(t.loss for t in trials) else 99.0


def searched(
    corpus: str, steps: int, size: str, names: list[str], seeds: list[int], at_once: int
) -> tuple[dict[str, str], list[Trial]]:
    """The best settings, and all trials on the way."""
    best, trials = dict(BEST), []
    for name in names:
        option, values = FACTORS[name]
        with ThreadPoolExecutor(at_once) as pool:
            asked = [(value, {**best, option: value}, seed) for value in values for seed in seeds]
            started = [pool.submit(trial, corpus, steps, name, *one, size) for one in asked]
            found = [one.result() for one in started]
        for one in found:
            print(one, flush=True)
        trials += found
        best[option] = min(values, key=lambda value: mean_loss([t for t in found if t.value == value]))
    return best, trials


def main() -> None:
    """Search and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--size", default="mini")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--factors", default=",".join(FACTORS))
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--no-save", action="store_true", help="print only")
    a = parser.parse_args()
    seeds = [int(seed) for seed in a.seeds.split(",")]
    best, trials = searched(a.corpus, a.steps, a.size, a.factors.split(","), seeds, a.at_once)
    rows = [[t.factor, t.value, t.seed, t.reason if t.loss is None else round(t.loss, 4)] for t in trials]
    print("best:", " ".join(f"{option} {value}" for option, value in best.items()))
    if not a.no_save:
        write_results(
            RESULTS / "pretrain_recipe.json",
            title="The recipe of pretraining, one factor at a time",
            what=f"Held-out loss at 15 % masked after {a.steps} steps of a BERT-{a.size}, one thread a run",
            tables=[Table(["factor", "value", "seed", "loss"], rows)],
            remarks=["Best: " + " ".join(f"`{option} {value}`" for option, value in best.items())],
        )


if __name__ == "__main__":
    main()
