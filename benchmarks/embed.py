"""How many texts a second: heedful against its peers, with the same weights, texts and number of threads.

    HEEDFUL_DATA=… python benchmarks/embed.py

The texts are paragraphs of mixed length (or the lines of --texts FILE). Each round asks every engine once, in random
order; the figure is the median over the rounds of the ratio within a round. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import torch
from engines import ENGINES, engines
from materials import minilm, paragraphs
from results_file import RESULTS, Table, write_results

from heedful.inference.load import load_embedder
from heedful.inference.workers import worker_pool
from heedful.models.bert import BertConfig
from heedful.nn.packed_linear import PackedLinear

BASELINE = "sentence_transformers"


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "embed.json")
    parser.add_argument("--texts", type=Path, help="a file with a text a line")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engines", default=",".join(ENGINES), help=f"default: {','.join(ENGINES)}")
    parser.add_argument("--force", action="store_true", help="measure even on a busy machine")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    if load > 0.7 and not arguments.force:
        sys.exit(f"the machine is busy (load {load:.1f}): wait, or --force")
    if arguments.texts:
        lines = arguments.texts.read_text(encoding="utf-8").split("\n")
        texts = [line.strip() for line in lines if line.strip()][: arguments.count]
    else:
        texts = paragraphs(arguments.count, arguments.seed)
    names = list(dict.fromkeys([BASELINE, *arguments.engines.split(",")]))
    table = race(names, texts, arguments.rounds, random.Random(arguments.seed))
    write_results(
        arguments.output,
        "Embedding speed",
        f"Texts a second with all-MiniLM-L6-v2 in fp32, mean pooling, unit vectors, at most 256 tokens: {len(texts)} "
        f"English paragraphs of mixed length ({sum(map(len, texts)) // len(texts)} characters on average), "
        f"median of {arguments.rounds} rounds that go through the engines in random order.",
        [table],
        [
            f"Load before: {load:.2f}. The cosine is that with sentence-transformers, the least of all texts.",
            *(arithmetic(texts, float(row[1])) for row in table.rows if str(row[0]).startswith("heedful")),
        ],
    )


def race(names: list[str], texts: list[str], rounds: int, rng: random.Random) -> Table:
    """A row for each engine: its speed, and how it compares with the others round by round."""
    with engines(names, minilm()) as running:
        vectors = {name: engine.ask(texts)[0] for name, engine in running.items()}  # warms up, too
        seconds: dict[str, list[float]] = {name: [] for name in names}
        for _ in range(rounds):
            for name in rng.sample(names, len(names)):
                seconds[name].append(running[name].ask(texts)[1])
        versions = {name: engine.version for name, engine in running.items()}
    rows = []
    for name in names:
        cosine = float((vectors[name] * vectors[BASELINE]).sum(1).min())
        speed = len(texts) / statistics.median(seconds[name])
        ratios = [base / own for base, own in zip(seconds[BASELINE], seconds[name], strict=True)]
        ours = [own / mine for own, mine in zip(seconds[name], seconds.get("heedful", seconds[name]), strict=True)]
        spread = f"{min(ratios):.2f} … {max(ratios):.2f}"
        rows.append(
            [f"{name} {versions[name]}", f"{speed:.1f}", f"{statistics.median(ratios):.2f}", spread,
             f"{statistics.median(ours):.2f}", f"{np.float64(cosine):.6f}"]
        )  # fmt: skip
    columns = ["engine", "texts/s", "× sentence-transformers", "least … most", "heedful is faster by ×", "least cosine"]
    return Table(columns, rows)


def arithmetic(texts: list[str], texts_per_second: float) -> str:
    """How near heedful comes to what the cores can compute: its linear layers alone, as a share of a bare product."""
    model = load_embedder(minilm(), "cpu")
    config, limit = model.encoder.config, 256
    assert isinstance(config, BertConfig)
    tokens = sum(len(e.ids) for e in model.tokenizer.encode_batch(texts, limit, offsets=False))
    width, inner = config.hidden_size, config.intermediate_size
    weights = config.num_hidden_layers * (4 * width * width + 2 * width * inner)
    ours = 2 * weights * tokens / len(texts) * texts_per_second
    most = product_rate(width, inner)
    return (
        f"Its linear layers compute {ours / 1e9:.0f} GFLOP/s, {ours / most:.0%} of the {most / 1e9:.0f} GFLOP/s that a "
        f"bare product of that shape reaches on all cores just after; attention, norms and GELU come on top."
    )


def product_rate(width: int, inner: int, rows: int = 1024, rounds: int = 200) -> float:
    """Operations a second of x Wᵀ + b with packed weights, every core with products of its own."""
    layer = PackedLinear(torch.nn.Linear(width, inner))
    x = torch.randn(rows, width)

    def product(_: int) -> None:
        with torch.inference_mode():
            layer(x)

    with worker_pool() as pool:
        list(pool.map(product, range(20)))
        start = time.perf_counter()
        list(pool.map(product, range(rounds)))
        return 2 * rows * width * inner * rounds / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
