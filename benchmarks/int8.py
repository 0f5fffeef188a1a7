"""int8 on a CPU: how fast, and at what cost.

    HEEDFUL_DATA=… python benchmarks/int8.py embed
    HEEDFUL_DATA=… python benchmarks/int8.py accuracy
    HEEDFUL_DATA=… python benchmarks/int8.py tasks RUN DATA [RUN DATA …]
    HEEDFUL_DATA=… python benchmarks/int8.py translate RUN
    python benchmarks/int8.py query

embed      Texts a second with all-MiniLM-L6-v2, beside sentence-transformers in float32 and peers in int8.
accuracy   Cosine with float32 on paragraphs, and Spearman's correlation on STS-B's dev set.
tasks      Fine-tuned RUNs on their dev DATA: the score in float32 and in int8, and the speed.
translate  A Transformer on Multi30k's test set by a beam of 5: BLEU and speed beside CTranslate2.
query      Milliseconds of one short query.

All but accuracy need an idle machine and, to mean something, a processor with VNNI. Int8 is forced where it has none.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from engine_process import Build, processes
from engines import Vectors
from int8_engines import TRANSLATIONS, VECTORS
from latency import WORDS
from materials import minilm, multi30k, paragraphs, stsb
from results_file import RESULTS, Table, write_results

from heedful.checkpoints.translation_folder import load_translation
from heedful.data.bitext.reading import read_pairs
from heedful.inference.embedder import Embedder
from heedful.inference.load import load_embedder, model_path, predictor
from heedful.nn.int8 import TOKEN_LEVELS
from heedful.nn.packed_int8 import int8_instructions, int8_levels
from heedful.tasks.label_metrics import spearman
from heedful.tasks.translate_scores import Scorer, tokenizer_for

Times = Mapping[str, Sequence[float]]
# An engine's threads go on waiting busily after its answer, on the cores that the next engine wants.
IN_A_ROW, PAUSE = 20, 0.5


def main() -> None:
    """Measure one part and write its results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=list(PARTS))
    parser.add_argument("given", nargs="*", type=Path, metavar="RUN [DATA]")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--count", type=int, default=1000, help="of texts, sentences or queries")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--engines", help="by commas  [default: all]")
    parser.add_argument("--force", action="store_true", help="measure even on a busy machine")
    a = parser.parse_args()
    load = os.getloadavg()[0]
    if a.part != "accuracy" and load > 0.7 and not a.force:
        sys.exit(f"the machine is busy (load {load:.1f}): wait, or --force")
    a.output = a.output or RESULTS / f"int8_{a.part}.json"
    PARTS[a.part](a)


def embed(a: argparse.Namespace) -> None:
    """Texts a second."""
    texts = paragraphs(a.count, 0)
    vectors, seconds, versions = _raced(_chosen(VECTORS, a.engines), minilm(), texts, a.rounds)
    exact = vectors["sentence_transformers"]
    rows = [
        [f"{name} {versions[name]}", f"{len(texts) / statistics.median(seconds[name]):.1f}",
         *_ratios(seconds, name), f"{(own * exact).sum(1).mean():.4f}", f"{(own * exact).sum(1).min():.4f}"]
        for name, own in vectors.items()
    ]  # fmt: skip
    columns = ["engine", "texts/s", "× sentence-transformers", "least … most", "mean cosine", "least cosine"]
    what = f"Texts a second with all-MiniLM-L6-v2, {len(texts)} paragraphs, median of {a.rounds} rounds in random order"
    write_results(a.output, "int8: embedding speed", what, [Table(columns, rows)], [_processor()])


def accuracy(a: argparse.Namespace) -> None:
    """How near the vectors stay, with tokens of 8 bits as with VNNI, and as this processor computes them."""
    texts, (first, second, judged) = paragraphs(a.count, 0), _judged_pairs()
    exact = load_embedder(minilm(), "cpu")
    models: dict[str, Embedder] = {"float32": exact}
    with _eight_bits():
        models["int8, tokens of 8 bits (VNNI)"] = load_embedder(minilm(), "cpu", force=True, precision="int8")
    if int8_levels() != TOKEN_LEVELS:
        models["int8, tokens of 7 bits (this processor)"] = load_embedder(minilm(), "cpu", True, "int8")
    right, rows = _unit(exact, texts), []
    for name, model in models.items():
        cosines = (right * _unit(model, texts)).sum(1)
        similar = (_unit(model, first) * _unit(model, second)).sum(1)
        kept = len(model.int8.float32) if model.int8 else 24
        figures = (cosines.mean(), cosines.min(), 100 * spearman(judged, similar.tolist()))
        rows.append([name, f"{24 - kept} of 24", f"{figures[0]:.4f}", f"{figures[1]:.4f}", f"{figures[2]:.2f}"])
    columns = ["all-MiniLM-L6-v2 in", "matrices in int8", "mean cosine", "least cosine", "STS-B dev Spearman"]
    what = f"Cosine with float32 of the vectors of {len(texts)} English paragraphs, and STS-B's {len(judged)} dev pairs"
    write_results(a.output, "int8: what it costs", what, [Table(columns, rows)], [_processor()])


def tasks(a: argparse.Namespace) -> None:
    """Scores and seconds of fine-tuned models."""
    rows = []
    for run, file in zip(a.given[::2], a.given[1::2], strict=True):
        models = {"float32": predictor(run, "cpu"), "int8": predictor(run, "cpu", force=True, precision="int8")}
        seconds: dict[str, list[float]] = {name: [] for name in models}
        for number in range(a.rounds + 1):  # the first warms up
            for name, model in models.items():
                data = model.read(str(file))
                start = time.perf_counter()
                scores = model.evaluate(data).scores
                seconds[name] += [time.perf_counter() - start] if number else []
                if not number:
                    told = ", ".join(f"{score} {100 * value:.2f}" for score, value in scores.items())
                    rows.append([run.name, name, told])
        faster = [f / i for f, i in zip(seconds["float32"], seconds["int8"], strict=True)]
        rows[-2] += [f"{statistics.median(seconds['float32']):.2f}", "1.00"]
        rows[-1] += [f"{statistics.median(seconds['int8']):.2f}", f"{statistics.median(faster):.2f}"]
    columns = ["run", "precision", "scores", "seconds", "× float32"]
    what = f"Fine-tuned models on their dev data, median of {a.rounds} rounds in turns"
    write_results(a.output, "int8: fine-tuned models", what, [Table(columns, rows)], [_processor()])


def translate(a: argparse.Namespace) -> None:
    """BLEU, and sentences a second."""
    (run,) = a.given
    folder = load_translation(model_path(run))
    pairs = read_pairs([multi30k("test_2016_flickr.tsv")], *folder.names).examples[: a.count]
    said, seconds, versions = _raced(
        _chosen(TRANSLATIONS, a.engines), run, [pair.source for pair in pairs], a.rounds, "heedful"
    )
    scorer = Scorer([pair.target for pair in pairs], tokenizer_for(folder.names[1]))
    rows = [
        [f"{name} {versions[name]}", f"{len(pairs) / statistics.median(seconds[name]):.1f}",
         *_ratios(seconds, name, "heedful"), f"{scorer.scores(own)['bleu']:.2f}"]
        for name, own in said.items()
    ]  # fmt: skip
    columns = ["engine", "sentences/s", "× heedful in float32", "least … most", "BLEU"]
    what = f"{len(pairs)} sentences of Multi30k's test set by a beam of 5, same weights, median of {a.rounds} rounds"
    write_results(a.output, "int8: translation", what, [Table(columns, rows)], [_processor()])


def query(a: argparse.Namespace) -> None:
    """Milliseconds of one short query."""
    rng, builds = random.Random(0), _chosen(VECTORS, a.engines)
    times: dict[str, list[float]] = {name: [] for name in builds}
    with processes(builds, minilm(), ["warming up"]) as running:
        for _ in range(a.count // IN_A_ROW):
            asked = [" ".join(rng.choices(WORDS, k=rng.randint(4, 10))) + "?" for _ in range(IN_A_ROW)]
            for name in rng.sample(list(builds), len(builds)):
                time.sleep(PAUSE)
                times[name] += [1000 * running[name].ask([text])[1] for text in asked]
        versions = {name: engine.version for name, engine in running.items()}
    base, rows = np.median(times["sentence_transformers"]), []
    for name, own in times.items():
        p50, p95 = np.percentile(own, [50, 95])
        rows.append([f"{name} {versions[name]}", f"{p50:.2f}", f"{p95:.2f}", f"{p50 / base:.2f}"])
    columns = ["engine", "p50 ms", "p95 ms", "p50 / sentence-transformers"]
    what = (
        f"Milliseconds from a query of 4 to 10 words to its unit vector, {a.count} queries one at a time, "
        f"{IN_A_ROW} in a row to each engine in turn"
    )
    write_results(a.output, "int8: one short query", what, [Table(columns, rows)], [_processor()])


PARTS: Mapping[str, Callable[[argparse.Namespace], None]] = {
    "embed": embed,
    "accuracy": accuracy,
    "tasks": tasks,
    "translate": translate,
    "query": query,
}


def _raced(
    builds: Mapping[str, Build], model: Path, texts: list[str], rounds: int, warm: str = "sentence_transformers"
) -> tuple[dict[str, Any], dict[str, list[float]], dict[str, str]]:
    """What each engine says, the seconds of its rounds, and its version."""
    assert warm in builds, f"the engine {warm} is what the others are compared with"
    rng = random.Random(0)
    with processes(builds, model, texts[:20]) as running:
        said = {name: engine.ask(texts)[0] for name, engine in running.items()}
        seconds: dict[str, list[float]] = {name: [] for name in builds}
        for _ in range(rounds):
            for name in rng.sample(list(builds), len(builds)):
                seconds[name].append(running[name].ask(texts)[1])
        return said, seconds, {name: engine.version for name, engine in running.items()}


def _chosen(builds: Mapping[str, Build], names: str | None) -> dict[str, Build]:
    return {name: builds[name] for name in (names.split(",") if names else builds)}


def _ratios(seconds: Times, name: str, base: str = "sentence_transformers") -> tuple[str, str]:
    """How many times as fast as the base, round by round: the median, and least and most."""
    found = [theirs / own for theirs, own in zip(seconds[base], seconds[name], strict=True)]
    return f"{statistics.median(found):.2f}", f"{min(found):.2f} … {max(found):.2f}"


def _processor() -> str:
    found = int8_instructions()
    return f"On this machine: {found.reason}" + ("." if found.there else "; int8 is forced, with tokens of 7 bits.")


def _unit(model: Embedder, texts: Sequence[str]) -> Vectors:
    return np.asarray(model.embed(texts, normalize=True))


def _judged_pairs() -> tuple[list[str], list[str], list[float]]:
    """The sentences of STS-B's dev set, first and second, and how alike people find them."""
    with stsb("dev.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [r["sentence1"] for r in rows], [r["sentence2"] for r in rows], [float(r["score"]) for r in rows]


@contextmanager
def _eight_bits() -> Iterator[None]:
    """The formula with tokens of 8 bits, which a processor with VNNI computes and any other can, slowly."""
    with patch("heedful.inference.int8.int8_levels", lambda: TOKEN_LEVELS), \
         patch("heedful.nn.packed_linear.can_pack_int8", lambda: int8_instructions().there):  # fmt: skip
        yield


if __name__ == "__main__":
    main()
