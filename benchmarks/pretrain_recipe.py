"""The recipe of pretraining, found one factor at a time: short runs judged by their held-out loss at 15 % masked.

    python benchmarks/pretrain_recipe.py CORPUS --keep DIR [--steps 1500] [--seeds 0] [--factors rate,pairs]

From the best settings so far each factor in turn is tried with all its values, one thread a run, and the best value is
kept before the next factor is tried. With several seeds a value counts by the mean of its losses. Factors that need a
corpus of their own (the vocabulary, whole words) are tried by giving that corpus. Runs are kept in DIR: what is there
is read instead of trained, what was stopped goes on, and all runs of one seed share one minute of skip-gram.
docs/results/pretrain_recipe.json gets a line for each run, those that failed too.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from results_file import RESULTS, Table, write_results

# Every step has 1,024 tokens, whatever the length, but where the batch itself is tried.
BEST = {
    "--start": "informed", "--lr": "1e-3", "--phases": "128:100%", "--batch-size": "8", "--mask-rate": "0.3",
    "--pairs": "none", "--dropout": "0", "--warmup": "0.1", "--weight-decay": "0.01", "--set": "initializer_range=0.02",
}  # fmt: skip
FACTORS: dict[str, tuple[str, list[str]]] = {
    "start": ("--start", ["informed", "random"]),
    "pairs": ("--pairs", ["none", "sop", "nsp"]),
    "rate": ("--lr", ["1e-3", "2e-3", "3e-3"]),
    "masked": ("--mask-rate", ["0.15", "0.3", "0.4"]),
    "spread": ("--set", ["initializer_range=0.02", "initializer_range=0.04", "initializer_range=0.06"]),
    "batch": ("--batch-size", ["4", "8", "16"]),
    "lengths": ("--phases", ["128:100%", "64:80%,128:20%"]),
    "warmup": ("--warmup", ["0.02", "0.1", "0.25"]),
    "decay": ("--weight-decay", ["0.0", "0.01", "0.1"]),
}


class Trial(NamedTuple):
    """A run: what was tried, and how it ended on held-out text."""

    factor: str
    value: str
    seed: int
    loss: float | None
    pairs: float | None = None  # the accuracy on pairs, where there were some
    reason: str = ""  # why there is no loss


def scores_of(run: Path) -> dict[str, float] | None:
    """The last evaluation of a finished run."""
    if not (run / "model").exists():
        return None
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    evaluations: list[dict[str, float]] = [line["evaluation"] for line in lines if "evaluation" in line]
    return evaluations[-1]


def trial(
    corpus: str, keep: Path, steps: int, size: str, factor: str, value: str, options: dict[str, str], seed: int
) -> Trial:
    """Train in a process of its own with one thread, unless it is done."""
    told = [word for pair in options.items() for word in pair]
    run = keep / "_".join([Path(corpus).name, size, str(steps), str(seed), *options.values()]).replace("%", "")
    start = keep / f"start_{Path(corpus).name}_{size}_{seed}"
    if scores_of(run) is None:
        if options["--start"] == "informed" and start.exists() and not run.exists():
            shutil.copytree(start, run / "start")
        command = [
            *(sys.executable, "-m", "heedful", "pretrain", corpus, "-o", str(run), "--size", size, *told, "--resume"),
            *("--seed", str(seed), "--budget", f"{steps}steps", "--eval-every", "0", "--checkpoint-every", "0"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        if done.returncode:
            return Trial(factor, value, seed, None, reason=" ".join(done.stderr.split())[-300:])
    if (run / "start" / "model").exists() and not start.exists():
        shutil.copytree(run / "start", start)
    scores = scores_of(run) or {}
    return Trial(factor, value, seed, scores["mlm_loss"], scores.get("nsp_accuracy", scores.get("sop_accuracy")))


def mean_loss(trials: list[Trial]) -> float:
    """The mean over seeds; a run that failed makes its value the worst."""
    return sum(t.loss for t in trials if t.loss is not None) / len(trials) if all(t.loss for t in trials) else 99.0


def searched(
    corpus: str,
    keep: Path,
    steps: int,
    size: str,
    names: list[str],
    seeds: list[int],
    at_once: int,
    best: dict[str, str],
) -> tuple[dict[str, str], list[Trial]]:
    """The best settings, and all trials on the way."""
    trials = []
    for name in names:
        option, values = FACTORS[name]
        with ThreadPoolExecutor(at_once) as pool:
            asked = [(value, {**best, option: value}, seed) for value in values for seed in seeds]
            started = [pool.submit(trial, corpus, keep, steps, size, name, *one) for one in asked]
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
    parser.add_argument("--keep", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--size", default="mini")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--factors", default=",".join(FACTORS))
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--from-best", nargs="*", default=[], metavar="OPTION=VALUE", help="begin elsewhere: lr=2e-3 …")
    parser.add_argument("--no-save", action="store_true", help="print only")
    a = parser.parse_args()
    seeds = [int(seed) for seed in a.seeds.split(",")]
    begin = {**BEST, **{f"--{option}": value for option, value in (one.split("=", 1) for one in a.from_best)}}
    best, trials = searched(a.corpus, a.keep, a.steps, a.size, a.factors.split(","), seeds, a.at_once, begin)
    rows = [[t.factor, t.value, t.seed, t.reason if t.loss is None else round(t.loss, 4), t.pairs] for t in trials]
    print("best:", " ".join(f"{option} {value}" for option, value in best.items()))
    if not a.no_save:
        write_results(
            RESULTS / "pretrain_recipe.json",
            title="The recipe of pretraining, one factor at a time",
            what=f"Held-out loss at 15 % masked after {a.steps} steps of a BERT-{a.size}, one thread a run",
            tables=[Table(["factor", "value", "seed", "loss", "accuracy on pairs"], rows)],
            remarks=["Best: " + " ".join(f"`{option} {value}`" for option, value in best.items())],
        )


if __name__ == "__main__":
    main()
