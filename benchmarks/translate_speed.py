"""Speed of translation: training against `transformers`, decoding against `transformers` and CTranslate2.

    HEEDFUL_DATA=… python benchmarks/translate_speed.py train RUN
    HEEDFUL_DATA=… python benchmarks/translate_speed.py decode RUN

RUN is a trained Transformer (post-norm, sinusoidal positions), whose size, tokenizers and, to decode, weights are
used by all. Run it on an idle machine.

train   Steps on Multi30k, see translate_trainers.py, in float32 and in bfloat16 mixed precision. The figure is the
        median over rounds of the ratio of tokens per second.
decode  The test set by a beam of 5 with the same weights, and its sentences one by one.

Each engine and trainer has a process of its own, and all are asked in random order in each round.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import get_args

import numpy as np
from engine_process import EngineProcess, processes
from marian import transformer_in
from materials import multi30k
from results_file import RESULTS, Table, write_results
from translate_engines import BEAM, ENGINES
from translate_trainers import TRAINERS, random_batches, sorted_batches, training_pairs

from heedful.checkpoints.translation_folder import TranslationFolder, load_translation
from heedful.data.bitext.reading import read_pairs
from heedful.inference.load import model_path
from heedful.training.training_config import Precision

QUIET = 0.3  # seconds in which the idle threads of the engine before stop looking for work
LEAST_SAME = 0.9  # of the translations; rounding, and when a search stops, change a few


def main() -> None:
    """Measure one of the two and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["train", "decode"])
    parser.add_argument("run", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=10, help="training steps a round")
    parser.add_argument("--batch-size", type=int, default=4096, help="tokens of a training step")
    parser.add_argument("--sentences", type=int, default=1000, help="of the test set, to decode")
    parser.add_argument("--single", type=int, default=100, help="of them one by one")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--force", action="store_true", help="measure even on a busy machine")
    a = parser.parse_args()
    load = os.getloadavg()[0]
    if load > 0.7 and not a.force:
        sys.exit(f"the machine is busy (load {load:.1f}): wait, or --force")
    if a.what == "train":
        train(a.run, a.output or RESULTS / "translate_training_speed.json", a.rounds, a.steps, a.batch_size)
    else:
        output = a.output or RESULTS / "translate_decoding_speed.json"
        decode(a.run, output, a.rounds, a.sentences, a.single, a.engines.split(","))


def train(run: Path, output: Path, rounds: int, steps: int, batch_size: int) -> None:
    """Race the trainers."""
    folder, rng = load_translation(model_path(run)), random.Random(0)
    builds = {name: partial(build, steps, batch_size) for name, build in TRAINERS.items()}
    with processes(builds, run, "float32") as running:
        tables = [training_table(precision, running, rounds, rng) for precision in get_args(Precision)]
    pairs = training_pairs(folder)
    ways = (make(pairs, steps, batch_size) for make in (sorted_batches, random_batches))
    same, drawn = (sum(p.padding for p in batches) / sum(p.tokens for p in batches) for batches in ways)
    parameters = sum(p.numel() for p in folder.model.parameters())
    write_results(
        output,
        "Translation: training speed",
        f"Tokens of both sides, without padding, per second of training steps, {described(folder)}, "
        f"{parameters / 1e6:.1f} M parameters, beside transformers' MarianMTModel of the same size; Multi30k, "
        f"{batch_size} tokens a batch. Each trainer has a process of its own, and they take their rounds in turns.",
        tables,
        [
            f'The ratio is the median of {rounds} rounds of {steps} steps. "Same batches" are ours, of sentences that '
            f'are alike in length, with {same:.0%} of padding; "random batches" are what transformers\' Seq2SeqTrainer '
            f"makes if it is not asked for anything else, with {drawn:.0%} of padding.",
        ],
        arguments=f"train RUN --rounds {rounds} --steps {steps} --batch-size {batch_size}",
    )


def training_table(
    precision: Precision, running: Mapping[str, EngineProcess], rounds: int, rng: random.Random
) -> Table:
    """Tokens a second of each trainer in one precision, after a round that warms up."""
    speeds: dict[str, list[float]] = {name: [] for name in running}
    for number in range(rounds + 1):
        for name in rng.sample(list(running), len(running)):
            tokens, seconds = running[name].ask(precision)
            if number:
                speeds[name].append(tokens / seconds)
    rows = []
    for name, own in speeds.items():
        ratios = [mine / theirs for mine, theirs in zip(speeds["heedful"], own, strict=True)]
        spread = f"{min(ratios):.2f} … {max(ratios):.2f}"
        speed = f"{statistics.median(own):,.0f}"
        rows.append([f"{name} {running[name].version}", speed, f"{statistics.median(ratios):.2f}", spread])
    return Table([f"products in {precision}", "tokens/s", "heedful is faster by ×", "least … most"], rows)


def decode(run: Path, output: Path, rounds: int, sentences: int, single: int, names: Sequence[str]) -> None:
    """Race the decoders on the whole test set and on single sentences."""
    folder = load_translation(model_path(run))
    pairs = read_pairs([multi30k("test_2016_flickr.tsv")], *folder.names).examples[:sentences]
    texts, rng = [pair.source for pair in pairs], random.Random(0)
    with processes({name: ENGINES[name] for name in names}, run, texts[:20]) as running:
        said = {name: engine.ask(texts)[0] for name, engine in running.items()}  # warms up, too
        check_same_work(said)
        whole: dict[str, list[float]] = {name: [] for name in names}
        for _ in range(rounds):
            for name in rng.sample(names, len(names)):
                whole[name].append(running[name].ask(texts)[1])
        alone: dict[str, list[float]] = {name: [] for name in names}
        for text in rng.sample(texts, min(single, len(texts))):
            for name in rng.sample(names, len(names)):
                time.sleep(QUIET)
                alone[name].append(running[name].ask([text])[1] * 1000)
        versions = {name: engine.version for name, engine in running.items()}
    tokens = sum(len(e.ids) - 1 for e in folder.sides.target.encode_batch(said["heedful"], offsets=False))
    write_results(
        output,
        "Translation: decoding speed",
        f"{len(texts)} sentences of Multi30k's test set by a beam of {BEAM} in fp32, {described(folder)}, the same "
        f"weights in all engines: text to text, median of {rounds} rounds that go through the engines in random order.",
        [speed_table(whole, said, tokens, versions), latency_table(alone, versions)],
        [f"The second table is for {len(alone['heedful'])} sentences of the set one by one."],
        arguments=f"decode RUN --rounds {rounds} --sentences {sentences} --single {single}",
    )


def check_same_work(said: Mapping[str, Sequence[str]]) -> None:
    """Stop where an engine says something else: its time would be that of another task."""
    for name, texts in said.items():
        same = np.mean([a == b for a, b in zip(texts, said["heedful"], strict=True)])
        if same < LEAST_SAME:
            sys.exit(f"{name} and heedful agree on {same:.1%} of the translations only: this would compare nothing")


def speed_table(
    seconds: Mapping[str, list[float]], said: Mapping[str, list[str]], tokens: int, versions: Mapping[str, str]
) -> Table:
    """Sentences and tokens a second, and how the others compare with us round by round."""
    rows = []
    for name, times in seconds.items():
        ratios = [own / mine for own, mine in zip(times, seconds["heedful"], strict=True)]
        equal = np.mean([a == b for a, b in zip(said[name], said["heedful"], strict=True)])
        rate = statistics.median(times)
        rows.append(
            [f"{name} {versions[name]}", f"{len(said[name]) / rate:.1f}", f"{tokens / rate:,.0f}",
             f"{statistics.median(ratios):.2f}", f"{min(ratios):.2f} … {max(ratios):.2f}", f"{equal:.1%}"]
        )  # fmt: skip
    columns = ["engine", "sentences/s", "tokens/s", "heedful is faster by ×", "least … most", "same translation"]
    return Table(columns, rows)


def latency_table(milliseconds: Mapping[str, list[float]], versions: Mapping[str, str]) -> Table:
    """How long one sentence takes."""
    ours = np.median(milliseconds["heedful"])
    rows = []
    for name, times in milliseconds.items():
        p50, p95 = np.percentile(times, [50, 95])
        rows.append([f"{name} {versions[name]}", f"{p50:.1f}", f"{p95:.1f}", f"{p50 / ours:.2f}"])
    return Table(["engine", "p50 ms", "p95 ms", "heedful is faster by ×"], rows)


def described(folder: TranslationFolder) -> str:
    """The size of a model in words."""
    config = transformer_in(folder).config
    layers = f"{config.encoder_layers} + {config.decoder_layers} layers"
    shape = f"width {config.width}, {config.heads} heads, feed-forward {config.inner}"
    return f"a Transformer of {layers}, {shape}, {config.target_vocab_size} pieces"


if __name__ == "__main__":
    main()
