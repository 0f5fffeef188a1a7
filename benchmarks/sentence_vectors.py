"""Sentence vectors of one's own from raw lines alone, beside people's judgements: whitened, or trained by SimCSE.

    HEEDFUL_DATA=… HEEDFUL_EN=… python benchmarks/sentence_vectors.py whiten [--work DIR]
    HEEDFUL_DATA=… HEEDFUL_EN=… python benchmarks/sentence_vectors.py choose [--work DIR]
    HEEDFUL_DATA=… HEEDFUL_EN=… python benchmarks/sentence_vectors.py lines [--work DIR]

HEEDFUL_EN names the folder of an own model. `whiten` makes vectors from each of its layers, chooses the layer by the
scored pairs of STS-B's *training* file, from which nothing is learned, and looks at STS-B dev for that one. `choose`
tries one setting of SimCSE after the other, keeps the best of each, and judges by the same training file (or --scored
FILE); what it chose stands in docs/results. `lines` trains once with that on more lines and looks at STS-B dev, once,
with what the same model gives without training beside it. A folder that is named is gone on with.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from finetune_experiments import place
from judged_vectors import correlation, judged, random_model, word_vectors
from materials import fingerprint, written_sentences
from results_file import RESULTS, Table, write_results

import heedful
from heedful.checkpoints.folder import read_folder
from heedful.inference.load import model_path
from heedful.inference.whitened import whiten

CHOSEN_ON, DEV = "stsb/train.tsv", "stsb/dev.tsv"
TRIALS = "sentence_vectors_choices.json"
START = {"learning_rate": 1e-4, "dropout": 0.1, "temperature": 0.05, "pooling": "mean", "batch_size": 64}
TRIED: dict[str, tuple[Any, ...]] = {
    "learning_rate": (3e-5, 3e-4),
    "dropout": (0.05, 0.2),
    "temperature": (0.1, 0.02),
    "batch_size": (256,),
    "pooling": ("cls",),
}


def main() -> None:
    """Choose, or measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("whiten", "choose", "lines"))
    parser.add_argument("--work", type=Path, help="keep the runs here")
    parser.add_argument("--scored", help="the pairs that are judged by [choose stsb/train.tsv; lines stsb/dev.tsv]")
    parser.add_argument("--lines", type=int, help="so many to learn from [whiten, choose 20,000; lines 100,000]")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder to write to")
    asked = parser.parse_args()
    model = place("en")
    with tempfile.TemporaryDirectory() as scratch:
        work = asked.work or Path(scratch)
        work.mkdir(parents=True, exist_ok=True)
        bench = Bench(model, work)
        if asked.what == "whiten":
            whitened(bench, asked.results, asked.lines or 20_000)
        elif asked.what == "choose":
            choose(bench, asked.results, asked.scored or CHOSEN_ON, asked.lines or 20_000)
        else:
            measure(bench, asked.results, asked.scored or DEV, asked.lines or 100_000)


class Bench:
    """A model, and the folder in which it is trained."""

    def __init__(self, model: Path, work: Path) -> None:
        self.model, self.work = model, work

    def lines(self, count: int) -> list[str]:
        """So many sentences, drawn from all of Wikipedia."""
        path = written_sentences(self.work / "sentences.txt")
        return random.Random(0).sample(path.read_text(encoding="utf-8").splitlines(), count)

    def trained(self, settings: Mapping[str, Any], lines: int) -> heedful.Run:
        """The run of these settings, which is made once; an epoch, and no scores are looked at."""
        name = "-".join(
            [
                fingerprint(*model_path(self.model).glob("*.safetensors")),
                f"{lines}",
                *(f"{value}" for value in settings.values()),
            ]
        )
        rows = [{"text": line} for line in self.lines(lines)]
        given: dict[str, Any] = {
            **{key: value for key, value in settings.items() if key != "temperature"},
            "set": {"temperature": settings["temperature"]},
            **{"epochs": 1, "max_length": 64, "resume": True, "progress": False},
        }
        return heedful.finetune("embed", model=self.model, train=rows, output=self.work / name, **given)

    def score(self, settings: Mapping[str, Any], lines: int, scored: str) -> float:
        """How the vectors agree with people after such a run."""
        return judged(self.trained(settings, lines).model, scored)


def whitened(bench: Bench, results: Path, lines: int) -> None:
    """Every layer by the training file's pairs, and the best of them by dev's."""
    made = {
        layer: whiten(bench.model, bench.lines(lines), bench.work / f"layer-{layer}", layer=layer, overwrite=True)
        for layer in range(read_folder(model_path(bench.model)).model_config.layers + 1)
    }
    chosen_on = {layer: judged(one.path, CHOSEN_ON) for layer, one in made.items()}
    best = max(chosen_on, key=chosen_on.__getitem__)
    dev = {
        f"whitened, layer {best}": judged(made[best].path, DEV),
        "the own model as it is, mean of its states": judged(bench.model, DEV, "mean"),
        "the mean of its word embeddings": correlation(word_vectors(bench.model), DEV),
    }
    write_results(
        results / "sentence_vectors_whitened.json",
        "Sentence vectors of your own from raw lines, without training",
        f"`heedful whiten` on an own BERT (`$HEEDFUL_EN`) and {lines:,} sentences of the English Wikipedia, no labels. "
        "Spearman's correlation of cosines with the judgements of STS-B",
        [
            Table([f"layer, chosen on {CHOSEN_ON}", "Spearman"], [[str(layer), s] for layer, s in chosen_on.items()]),
            Table([f"vectors, {DEV}", "Spearman"], [[name, score] for name, score in dev.items()]),
        ],
        ["Layer 0 are the embeddings, without positions. Nothing was learned from the pairs but which layer to take."],
    )


def choose(bench: Bench, results: Path, scored: str, lines: int) -> None:
    """One field after the other, from the best so far."""
    best, trials = dict(START), []
    top = bench.score(best, lines, scored)
    trials.append([shown(best), top, "the start"])
    for name, values in TRIED.items():
        found = {value: bench.score({**best, name: value}, lines, scored) for value in values}
        trials += [[f"{name} {value}", score, "kept" if score > top and score == max(found.values()) else ""]
                   for value, score in found.items()]  # fmt: skip
        value = max(found, key=found.__getitem__)
        if found[value] > top:
            best, top = {**best, name: value}, found[value]
    write_results(
        results / TRIALS,
        "Sentence vectors from raw lines: what was tried",
        f"SimCSE from an own BERT (`$HEEDFUL_EN`) on {lines:,} sentences of Wikipedia, one epoch; Spearman on "
        f"{scored}, from which nothing is learned. One field after the other, each from the best so far, one seed",
        [Table(["settings", "Spearman", ""], trials)],
        [f"Chosen: {shown(best)}."],
        more={"scored": scored, "runs": [best]},
    )


def chosen(results: Path, scored: str) -> tuple[dict[str, Any], str]:
    """What `choose` has left, or where it would start, and what is to be said of that."""
    path = results / TRIALS
    if not path.exists():
        return dict(START), "The settings are those that choosing would start from: none of them was chosen."
    found = json.loads(path.read_text(encoding="utf-8"))
    if found["scored"] == scored:
        sys.exit(f"the settings were chosen on {scored}: a score there would flatter them")
    return found["runs"][0], f"The settings were chosen on {found['scored']} (`sentence_vectors.py choose`)."


def measure(bench: Bench, results: Path, scored: str, lines: int) -> None:
    """The trained model, and beside it what needs no training."""
    settings, how = chosen(results, scored)
    untrained = random_model(bench.model, 1, bench.work / "random")
    rows: dict[str, Callable[[], float]] = {
        "trained on raw lines": lambda: bench.score(settings, lines, scored),
        "the own model before, mean of its states": lambda: judged(bench.model, scored, "mean"),
        "the mean of its word embeddings": lambda: correlation(word_vectors(bench.model), scored),
        "random weights, mean of the states": lambda: judged(untrained, scored, "mean"),
        "the mean of random word embeddings": lambda: correlation(word_vectors(untrained), scored),
    }
    write_results(
        results / "sentence_vectors.json",
        "Sentence vectors of your own from raw lines",
        f"SimCSE from an own BERT (`$HEEDFUL_EN`) on {lines:,} sentences of the English Wikipedia, one epoch, no "
        f"labels: {shown(settings)}. Spearman's correlation of cosines with the judgements of {scored}",
        [Table(["vectors", "Spearman"], [[name, score()] for name, score in rows.items()])],
        [how],
    )


def shown(settings: Mapping[str, Any]) -> str:
    """The settings in words."""
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in settings.items())


if __name__ == "__main__":
    main()
