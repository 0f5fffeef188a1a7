"""What a BERT of your own is worth: it against random weights of its shape, on tasks with few labels.

    HEEDFUL_DATA=… HEEDFUL_EN=… HEEDFUL_ZH=… python benchmarks/transfer.py [--only TASK …] [--work DIR]

HEEDFUL_EN and HEEDFUL_ZH name the model folders. Each task is learned in two ways: by the whole model (fine-tuned),
and by a linear layer over its last states (frozen). The learning rate is chosen for each task, way and side by one run
a rate on training rows, of which the last fifth is held out; dev is looked at once a seed, with that rate and the last
weights. All runs are made in one process. What has been run is in the results file and is not run again unless the
model has become another, and several processes may work on different tasks at a time.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from finetune_experiments import place
from materials import fingerprint
from results_file import RESULTS, write_results
from transfer_tables import WEIGHTS, tables
from transfer_tasks import CHOOSING_FROM, Task, tasks_named

import heedful
from heedful.inference.load import model_path
from heedful.text.tokenizer import Tokenizer
from heedful.training.run_folder import RunFolder

FILE = RESULTS / "finetune_transfer.json"
TITLE = "What a BERT of your own is worth"
NEVER = 10**6  # steps between evaluations: only that at the end remains


@dataclass(frozen=True)
class Way:
    """How the labels are learned, the rates to choose from, and how many seeds there are."""

    name: str
    rates: tuple[float, ...]
    seeds: int
    settings: Mapping[str, Any]
    epochs: int | None = None  # None: the task's own


WAYS = (
    Way("fine-tuned", (1e-4, 3e-4, 1e-3), 5, {"dropout": 0.1}),
    Way("frozen", (1e-3, 3e-3, 1e-2), 5, {"features": (-1,)}, epochs=20),  # cheap: the states are computed once
)


def main() -> None:
    """Run what is missing, and write the results after each run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="TASK", help="these; some run only if they are named")
    parser.add_argument("--work", type=Path, help="where the runs take place; they are removed afterwards")
    parser.add_argument("-o", "--output", type=Path, default=FILE)
    parser.add_argument("--seeds", type=int, help="fewer, for a trial")
    parser.add_argument("--limit", type=int, help="training rows at most, for a trial")
    asked = parser.parse_args()
    measure(tasks_named(asked.only), asked.output, asked.work, asked.seeds, asked.limit)


def measure(
    tasks: Sequence[Task],
    output: Path = FILE,
    work: Path | None = None,
    seeds: int | None = None,
    limit: int | None = None,
) -> None:
    """All runs of these tasks that are not in the results yet."""
    models = {task.language: place(task.language) for task in tasks}  # one that is missing is told at once
    for task in tasks:
        bench = Bench(task, models[task.language], output, work, limit)
        for way in WAYS:
            rates = {weights: bench.chosen(way, weights) for weights in WEIGHTS}
            for seed in range(1, 1 + min(seeds or way.seeds, way.seeds)):
                for weights, rate in rates.items():
                    bench.score(way, weights, rate, seed)


class Bench:
    """A task, a model and the file of results."""

    def __init__(self, task: Task, model: Path, output: Path, work: Path | None, limit: int | None) -> None:
        self.task, self.model, self.output, self.work = task, model, output, work
        self.rows = {True: task.choosing_rows(limit), False: (task.training_rows(limit), task.dev_rows())}
        self.deciding = task.deciding_rows(limit)
        folder = model_path(model)
        shape = fingerprint(folder / "config.json", folder / "tokenizer.json", folder / "vocab.txt")
        self.prints = {"random": shape, "own": f"{shape}-{fingerprint(*folder.glob('*.safetensors'))}"}
        self.cased = is_cased(folder)

    def chosen(self, way: Way, weights: str) -> float:
        """The rate that does best on the training rows that are held out."""
        return max(way.rates, key=lambda rate: self.score(way, weights, rate, 1, choosing=True))

    def score(self, way: Way, weights: str, rate: float, seed: int, choosing: bool = False) -> float:
        """The score of a run, which is made unless it is known."""
        part = f"choosing {rate:g}" if choosing else f"seed {seed}"
        name = f"{self.task.name} {way.name} {weights} {part}"
        asked = {
            **{"task": self.task.name, "way": way.name, "weights": weights, "rate": rate, "seed": seed},
            **{"choosing": choosing, "epochs": way.epochs or self.task.epochs, "model": self.prints[weights]},
            **{"rows": len(self.rows[choosing][0]), "dev_rows": len(self.rows[choosing][1])},
            **({"decided": True} if self.task.decided else {}),
        }
        found = runs_in(self.output).get(name, {})
        if asked.items() - found.items():
            found = {"run": name, **asked, **self._made(way, asked)}
            print(name, found["score"], f"{found['seconds']} s", flush=True)
            write(self.output, {**runs_in(self.output), name: found})  # another process may have written meanwhile
        return float(found["score"])

    def _made(self, way: Way, asked: Mapping[str, Any]) -> dict[str, Any]:
        start = time.process_time()
        train, dev = self.rows[asked["choosing"]]
        judged_apart = self.task.decided and not asked["choosing"]
        seen = self.deciding if judged_apart else (train, dev)
        with tempfile.TemporaryDirectory(dir=self.work) as scratch:
            run = heedful.finetune(
                self.task.kind,
                model=self.model,
                train=seen[0],
                dev=seen[1],
                output=Path(scratch) / "run",
                random_weights=asked["weights"] == "random",
                learning_rate=asked["rate"],
                **{name: asked[name] for name in ("epochs", "seed")},
                keep="last",
                eval_every=NEVER,
                checkpoint_every=0,
                progress=False,
                **self.task.settings(),
                **way.settings,
            )
            stored = RunFolder(run.folder).stored() or {}
            scores = heedful.evaluate(run, dev, rounds=0, progress=False).scores if judged_apart else run.scores
        score = scores[self.task.metric]
        return {
            "score": 0.0 if math.isnan(score) else round(score, 4),  # a correlation with what never changes
            "seconds": round(time.process_time() - start, 1),
            "precision": stored["training"]["precision"],
            "cased": self.cased,
        }


def is_cased(folder: Path) -> bool:
    """Whether a model tells capitals from small letters, by its tokenizer."""
    path = folder / "tokenizer.json"
    return path.exists() and Tokenizer.load(path).encode("A").ids != Tokenizer.load(path).encode("a").ids


def runs_in(output: Path) -> dict[str, dict[str, Any]]:
    """The runs of a results file, by name."""
    if not output.exists():
        return {}
    return {run["run"]: run for run in json.loads(output.read_text(encoding="utf-8"))["runs"]}


def write(output: Path, runs: Mapping[str, Mapping[str, Any]]) -> None:
    """The results file, with the tables of what there is so far."""
    precisions = " and ".join(sorted({run["precision"] for run in runs.values()}))
    minutes = sum(run["seconds"] for run in runs.values()) / 60
    write_results(
        output,
        TITLE,
        "Models of one's own (`$HEEDFUL_EN`, `$HEEDFUL_ZH`) against the same shape with random weights: the first rows "
        "of the training file, batches of 32, the last weights; mean pooling for texts, `compare` for pairs. "
        "Fine-tuned: all weights learn, dropout 0.1. Frozen: a linear layer over the last states. The vocabulary has "
        "small letters alone, but where a task is called cased",
        tables([way.name for way in WAYS], runs.values()),
        [
            "The learning rate in brackets was chosen for each task and side by one run a rate (fine-tuned "
            f"{_listed(WAYS[0].rates)}, frozen {_listed(WAYS[1].rates)}) on the first {CHOOSING_FROM:,} training rows "
            "at most (CoLA: on all), the last fifth of them held out; dev rows were seen once a seed. The interval is "
            "Student's, of the differences seed by seed: it tells how far the seeds agree, not how other dev rows "
            "would come out.",
            f"{len(runs)} runs, {minutes:.0f} minutes of processor time in all, {precisions}.",
        ],
        arguments=command([run["task"] for run in runs.values()]),
        more={"runs": list(runs.values())},
    )


def command(tasks: Sequence[str]) -> str:
    """The arguments that make all of the file, whatever this process was told to add to it."""
    if Path(sys.argv[0]).stem != "transfer":
        return "transfer"
    return f"--only {shlex.join(dict.fromkeys(tasks))}"


def _listed(rates: Sequence[float]) -> str:
    return ", ".join(f"{rate:g}" for rate in rates)


if __name__ == "__main__":
    main()
