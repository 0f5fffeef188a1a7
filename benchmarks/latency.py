"""How long one short query takes: heedful against its peers, asked in turn.

    python benchmarks/latency.py

Run it on an idle machine. Every engine lives in its own process, with the same weights; the queries differ.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import numpy as np
from engines import engines
from materials import minilm
from results_file import RESULTS, Table, write_results

NAMES = ("heedful", "sentence_transformers", "ctranslate2")
WORDS = ("where", "when", "how", "is", "the", "best", "old", "river", "town", "train", "music", "book", "weather")


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "latency.json")
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    queries = [" ".join(rng.choices(WORDS, k=rng.randint(4, 10))) + "?" for _ in range(arguments.queries)]
    times: dict[str, list[float]] = {name: [] for name in NAMES}
    with engines(NAMES, minilm()) as running:
        for query in queries:
            for name in rng.sample(NAMES, len(NAMES)):
                times[name].append(running[name].ask([query])[1] * 1000)
        versions = {name: engine.version for name, engine in running.items()}
    rows = []
    for name in NAMES:
        p50, p95 = np.percentile(times[name], [50, 95])
        share = p50 / np.median(times["sentence_transformers"])
        rows.append([f"{name} {versions[name]}", f"{p50:.2f}", f"{p95:.2f}", f"{share:.2f}"])
    write_results(
        arguments.output,
        "Latency of one short query",
        f"Milliseconds from a text to its unit vector, all-MiniLM-L6-v2 in fp32: {len(queries)} different queries "
        "of 4 to 10 words, one at a time, the engines in random order for each.",
        [Table(["engine", "p50 ms", "p95 ms", "p50 / sentence-transformers"], rows)],
    )


if __name__ == "__main__":
    main()
