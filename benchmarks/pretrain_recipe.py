"""The recipe of pretraining, found one factor at a time: short runs judged by their held-out loss at 15 % masked.

    python benchmarks/pretrain_recipe.py CORPUS --keep DIR [--factors rate,spread] [--seeds 0,1] [--from-best lr=2e-3]

From the best settings so far each factor in turn is tried with all its values, and the best value is kept before the
next factor is tried. With several seeds a value counts by the mean of its losses. All runs are given the same number of
tokens and one thread, and all are judged alike, whatever they were trained on: the first 512 held-out examples of 128
tokens without pairs, single tokens hidden. Seconds are those of the processor, which other work beside does not change
much; the skip-gram minute is told apart, since all runs of one seed share it.

docs/results/pretrain_recipe.json has a row for each run, those that failed too, and is written after each: a run that
has a row is never done again, and one that was stopped goes on; several processes may try different values at a time.
Another vocabulary is tried by giving a corpus that has it, with `--factors vocabulary`: losses are then to be compared
by the word, which is the column beside. `--factors batch:16,masked:0.15/0.4` tries these values only, beside the best
so far.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from results_file import RESULTS, Table, write_results

from heedful.checkpoints.encoder_folder import load_for_pretraining
from heedful.checkpoints.folder import read_folder
from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.examples import Recipe
from heedful.data.corpus.source import held_out_micro_batches
from heedful.tasks.masked_objective import held_out_examples
from heedful.tasks.pretraining import evaluate

PATH = RESULTS / "pretrain_recipe.json"
STOPPED = (130, 143)  # how a run ends that was sent SIGINT or SIGTERM
Options = Mapping[str, str]

# Where the length is tried, the batch is chosen so that a step has 2,048 tokens whatever its length.
BEST: Options = {
    "start": "informed", "lr": "1e-3", "phases": "128:100%", "batch-size": "8", "mask-rate": "0.3", "pairs": "none",
    "dropout": "0", "warmup": "0.1", "schedule": "linear", "weight-decay": "0.01", "beta2": "0.999",
    "masking": "token", "set": "initializer_range=0.02",
}  # fmt: skip


def _each(option: str, *values: str) -> dict[str, Options]:
    """The values of a factor that is a single option."""
    return {value: {option: value} for value in values}


SPREADS = ("0.02", "0.04", "0.06")
FACTORS: dict[str, dict[str, Options]] = {
    "start": _each("start", "informed", "random"),
    "rate": _each("lr", "1e-3", "5e-4", "1.5e-3", "2e-3", "3e-3"),
    "spread": {spread: {"set": f"initializer_range={spread}"} for spread in SPREADS},
    "length": {
        "128": {"phases": "128:100%", "batch-size": "16"},
        "64": {"phases": "64:100%", "batch-size": "32"},
        "64 then 128": {"phases": "64:50%,128:50%", "batch-size": "32"},
    },
    "batch": _each("batch-size", "8", "16", "32"),
    "growth": {
        "16": {"phases": "128:100%", "batch-size": "16"},
        "8 then 32": {"phases": "128x8:67%,128x32:33%", "batch-size": "16"},  # as many steps
    },
    "masked": _each("mask-rate", "0.3", "0.15", "0.4", "0.5"),
    "beta2": _each("beta2", "0.999", "0.98"),
    "warmup": _each("warmup", "0.02", "0.1", "0.25"),
    "schedule": _each("schedule", "linear", "cosine"),
    "decay": _each("weight-decay", "0.0", "0.01", "0.1"),
    "pairs": _each("pairs", "none", "nsp", "sop"),
    "words": _each("masking", "token", "word"),
    "dropout": _each("dropout", "0", "0.1"),
    "vocabulary": {"the corpus's": {}},
}


@dataclass(frozen=True)
class Trial:
    """A run: what it was told, and how it ended on held-out text."""

    factor: str  # what was tried
    value: str
    corpus: str
    size: str
    tokens: float  # in millions, each example counted with its full length
    seed: int
    options: Options
    loss: float | None = None
    word_loss: float | None = None  # for each word of the text
    accuracy: float | None = None
    pairs: float | None = None  # the accuracy on pairs, where there were some
    steps: int | None = None
    seen: float | None = None  # millions of tokens that there really were: many examples are shorter
    start_seconds: float | None = None  # of the processor: the skip-gram minute, where it was this run's
    seconds: float | None = None  # and the rest; unknown for a run that was stopped on the way
    reason: str = ""  # why there is no loss

    @property
    def told(self) -> tuple[object, ...]:
        """What makes it the same run as another, whatever factor it was done for."""
        return self.corpus, self.size, self.tokens, self.seed, tuple(sorted(self.options.items()))


class Bench:
    """All runs that were ever done, and how another one is."""

    def __init__(self, corpus: Path, keep: Path, path: Path = PATH, most: int | None = None) -> None:
        """`most` new runs end the search, as on a machine that others wait for."""
        self.corpus, self.keep, self.path, self.left = corpus, keep, path, most
        self.done = runs_in(path)

    def search(self, names: Sequence[str], seeds: Sequence[int], begin: Trial) -> Options:
        """The best settings, factor after factor."""
        best = dict(begin.options)
        for name, _, some in (name.partition(":") for name in names):
            losses = {}
            for value, change in FACTORS[name].items():
                if some and value not in some.split("/") and {**best, **change} != best:
                    continue
                asked = replace(begin, factor=name, value=value, options={**best, **change})
                losses[value] = mean_loss([self.outcome(replace(asked, seed=seed)) for seed in seeds])
            best.update(FACTORS[name][min(losses, key=lambda value: losses[value])])
        return best

    def outcome(self, asked: Trial) -> Trial:
        """The run, done now unless it was done before."""
        if asked.told not in self.done:
            if self.left == 0:
                sys.exit(f"not done yet: {asked.factor} {asked.value}")
            self.left = None if self.left is None else self.left - 1
            found = trained(asked, self.corpus, self.keep)
            self.done = {**runs_in(self.path), asked.told: found}  # another process may have written meanwhile
            print(found.factor, found.value, found.seed, found.loss, found.seconds, found.reason, flush=True)
            self.write()
        return self.done[asked.told]

    def write(self) -> None:
        """All runs so far, in the order in which they were done."""
        columns = ["tried", "value", "corpus", "seed", "loss", "loss a word", "accuracy", "accuracy on pairs", "steps"]
        columns += ["million tokens", "seconds", "settings"]
        rows = [
            [
                *(t.factor, t.value, t.corpus, t.seed, t.reason or t.loss, t.word_loss, t.accuracy, t.pairs, t.steps),
                *(t.seen, t.seconds, " ".join(f"{k} {v}" for k, v in t.options.items() if BEST[k] != v)),
            ]
            for t in self.done.values()
        ]
        minutes = [t.start_seconds for t in self.done.values() if t.start_seconds]
        write_results(
            self.path,
            title="The recipe of pretraining, one factor at a time",
            what="Held-out loss at 15 % masked, 128 tokens, no pairs, of short runs with one thread each; seconds are "
            "those of the processor. The last column tells in what a run differs from the first settings: "
            + ", ".join(f"{option} {value}" for option, value in BEST.items()),
            tables=[Table(columns, rows)],
            remarks=[f"The skip-gram minute took {seconds} seconds of one core." for seconds in minutes],
            arguments="CORPUS --keep DIR",
            more={"runs": [asdict(t) for t in self.done.values()]},
        )


def runs_in(path: Path) -> dict[tuple[object, ...], Trial]:
    """The runs of a results file, each by what makes it that run."""
    rows = json.loads(path.read_text(encoding="utf-8"))["runs"] if path.exists() else []
    return {one.told: one for one in (Trial(**row) for row in rows)}


def mean_loss(trials: Sequence[Trial]) -> float:
    """The mean over seeds; a run that failed makes its value the worst."""
    losses = [t.loss for t in trials if t.loss is not None]
    return sum(losses) / len(losses) if len(losses) == len(trials) else float("inf")


def trained(asked: Trial, corpus: Path, keep: Path) -> Trial:
    """Train in a process of its own with one thread, or go on with it, and judge what came out."""
    words = [asked.corpus, asked.size, f"{asked.tokens:g}M", str(asked.seed), *asked.options.values()]
    run, start = keep / "_".join(words).replace("%", ""), keep / f"start_{asked.corpus}_{asked.size}_{asked.seed}"
    started, afresh = None, not (run / "metrics.jsonl").exists()
    if asked.options["start"] == "informed":
        started = shared_start(asked, corpus, run, start)
    done, seconds = heedful_pretrain(asked, corpus, run, f"{asked.tokens:g}Mtokens")
    if done.returncode < 0 or done.returncode in STOPPED:
        sys.exit(f"stopped, and not counted as failed: {run}")
    if done.returncode:
        return replace(asked, reason=" ".join(done.stderr.split())[-300:])
    return replace(judged(asked, run, corpus), start_seconds=started, seconds=seconds if afresh else None)


def shared_start(asked: Trial, corpus: Path, run: Path, start: Path) -> float | None:
    """Give a run the skip-gram vectors of its seed; the seconds they took, if they were made for it."""
    seconds = None
    if not start.exists():
        made = start.with_name(f"{start.name}_run")
        _, seconds = heedful_pretrain(asked, corpus, made, "1steps")
        (made / "start").rename(start)
        shutil.rmtree(made)
    if not run.exists():
        shutil.copytree(start, run / "start")
    return seconds


def heedful_pretrain(
    asked: Trial, corpus: Path, run: Path, budget: str
) -> tuple[subprocess.CompletedProcess[str], float]:
    """One `heedful pretrain`, and the seconds of the processor it took."""
    told = [word for option, value in asked.options.items() for word in (f"--{option}", value)]
    command = [
        *(sys.executable, "-m", "heedful", "pretrain", str(corpus), "-o", str(run), "--size", asked.size, *told),
        *("--seed", str(asked.seed), "--budget", budget, "--eval-every", "0", "--checkpoint-every", "500", "--resume"),
    ]
    before = spent()
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return done, round(spent() - before, 1)


def spent() -> float:
    """The seconds of the processor that ended runs have taken."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def judged(asked: Trial, run: Path, folder: Path) -> Trial:
    """The trial with what its model scores on the examples that all are judged by."""
    corpus = Corpus.open(folder)
    model = load_for_pretraining(read_folder(run / "model"), seed=0)
    examples = held_out_examples(corpus, Recipe(max_length=128, pairs="none"))
    with torch.no_grad():
        scores = evaluate(model.eval(), held_out_micro_batches(examples, 32, 512))
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    own: dict[str, float] = [line["evaluation"] for line in lines if "evaluation" in line][-1]
    steps = [line for line in lines if "tokens" in line]
    text = corpus.manifest["shards"]["held_out"]
    words = sum(shard.get("words", 0) for shard in text)  # counted by `corpus build --words` only
    pieces = sum(shard["tokens"] for shard in text) / words if words else None
    return replace(
        asked,
        loss=round(scores["mlm_loss"], 4),
        word_loss=round(scores["mlm_loss"] * pieces, 4) if pieces else None,
        accuracy=round(scores["mlm_accuracy"], 4),
        pairs=round(own["nsp_accuracy"], 4) if "nsp_accuracy" in own else None,
        steps=steps[-1]["step"],
        seen=round(steps[-1]["tokens"] / 1e6, 3),
    )


def main() -> None:
    """Search and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--keep", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--tokens", type=float, default=0.512, help="of each run, in millions")
    parser.add_argument("--size", default="mini")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--factors", default=",".join(FACTORS))
    parser.add_argument("--most", type=int, help="stop after so many new runs")
    parser.add_argument("--from-best", nargs="*", default=[], metavar="OPTION=VALUE", help="begin elsewhere: lr=2e-3 …")
    a = parser.parse_args()
    torch.set_num_threads(1)
    begin = {**BEST, **dict(one.split("=", 1) for one in a.from_best)}
    seeds = [int(seed) for seed in a.seeds.split(",")]
    bench = Bench(a.corpus, a.keep, most=a.most)
    best = bench.search(a.factors.split(","), seeds, Trial("", "", a.corpus.name, a.size, a.tokens, 0, begin))
    print("best:", " ".join(f"--{option} {value}" for option, value in best.items()))


if __name__ == "__main__":
    main()
