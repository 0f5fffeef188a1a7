"""Training speed against `transformers`: BertForPreTraining on padded batches and ours on flat ones, in turns.

    python benchmarks/pretrain.py [--sizes tiny,mini,small] [--rounds 5] [--steps 4] [--precision bfloat16]

The same weights, batches, dropout (attention included), clipping and denormal setting on both sides, two threads,
128 tokens, batch 32, vocabulary 30522. Each round times a few steps of one side and then of the other; the figure is
the median over rounds of the ratio of tokens per second. "mixed" has lengths from 8 to 128, where padding costs.
Batches are random tokens and are made before the clock starts. The reference's optimiser is torch's AdamW as
`transformers` configures it by default: fused. With --precision bfloat16 both round the factors of their products,
the reference by torch's autocast, as `transformers` does it with bf16=True.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import get_args

import numpy as np
import torch
from padded_batches import padded
from results_file import RESULTS, Table, write_results
from transformers import BertConfig as ReferenceConfig
from transformers import BertForPreTraining

from heedful.data.batching import groups_of
from heedful.data.corpus.source import PretrainingMicroBatch
from heedful.models.bert import BertForPretraining, initialise, sized
from heedful.schema import Batch
from heedful.tasks.pretraining import pretraining_losses
from heedful.training.distributed import World
from heedful.training.optimiser import Optimiser
from heedful.training.step import Stepper
from heedful.training.timing import Clock
from heedful.training.training_config import Precision, TrainingConfig

VOCABULARY, LENGTH, BATCH, CLIP = 30522, 128, 32, 1.0


def micro_batch(rng: np.random.Generator, mixed: bool) -> PretrainingMicroBatch:
    """A batch of random tokens of which 15 % are to be predicted, the longest sequences first."""
    lengths = sorted(rng.integers(8, LENGTH + 1, BATCH).tolist() if mixed else [LENGTH] * BATCH, reverse=True)
    total = sum(lengths)
    masked = np.sort(rng.choice(total, round(0.15 * total), replace=False))
    batch = Batch(
        ids=torch.from_numpy(rng.integers(1000, VOCABULARY, total)),
        segments=torch.cat([(torch.arange(n) > n // 2).long() for n in lengths]),
        positions=torch.cat([torch.arange(n) for n in lengths]),
        lengths=tuple(lengths),
        groups=groups_of(lengths),
    )
    labels = torch.from_numpy(rng.integers(1000, VOCABULARY, len(masked)))
    nsp = torch.from_numpy(rng.integers(0, 2, BATCH))
    return PretrainingMicroBatch(batch, torch.from_numpy(masked), labels, nsp, LENGTH * BATCH - total)


def ours(
    size: str, dropout: float, precision: Precision, batches: list[PretrainingMicroBatch]
) -> Callable[[int], None]:
    """A function that trains one step of heedful."""
    from dataclasses import replace

    config = replace(sized(size, VOCABULARY), hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout)
    model = BertForPretraining(config)
    initialise(model, config, seed=0)
    recipe = TrainingConfig(steps=10**6, clip=CLIP, precision=precision)
    stepper = Stepper(
        model.train(), pretraining_losses, Optimiser(model, recipe), recipe, World(), Clock(), lambda: None
    )

    def step(number: int) -> None:
        stepper.take(number, [batches[number % len(batches)]])

    return step


def reference(
    size: str, dropout: float, precision: Precision, batches: list[dict[str, torch.Tensor]]
) -> Callable[[int], None]:
    """A function that trains one step of transformers."""
    shape = sized(size, VOCABULARY)
    config = ReferenceConfig(
        vocab_size=VOCABULARY,
        hidden_size=shape.hidden_size,
        num_hidden_layers=shape.num_hidden_layers,
        num_attention_heads=shape.num_attention_heads,
        intermediate_size=shape.intermediate_size,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    model = BertForPreTraining(config).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01, fused=True)

    def step(number: int) -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            loss = model(**batches[number % len(batches)]).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()
        optimiser.zero_grad()

    return step


def race(
    size: str, dropout: float, precision: Precision, mixed: bool, rounds: int, steps: int
) -> tuple[list[float], list[float], int]:
    """Seconds of each round of both sides, and the real tokens a round holds."""
    rng = np.random.default_rng(0)
    batches = [micro_batch(rng, mixed) for _ in range(steps)]
    sides = [
        ours(size, dropout, precision, batches),
        reference(size, dropout, precision, [padded(b) for b in batches]),
    ]
    times: list[list[float]] = [[], []]
    for side in sides:
        side(0)
    for _ in range(rounds):
        for side, seconds in zip(sides, times, strict=True):
            start = time.perf_counter()
            for number in range(steps):
                side(number)
            seconds.append(time.perf_counter() - start)
    return times[0], times[1], sum(b.tokens for b in batches)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="tiny,mini,small")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--settings", default="full 0.1,full 0.0,mixed 0.1", help="data and dropout, by commas")
    parser.add_argument("--precision", choices=get_args(Precision), default="float32")
    parser.add_argument("--no-save", action="store_true", help="print only")
    a = parser.parse_args()
    torch.set_flush_denormal(True)
    rows = []
    for size in a.sizes.split(","):
        for setting in a.settings.split(","):
            data, dropout = setting.split()
            mine, theirs, tokens = race(size, float(dropout), a.precision, data == "mixed", a.rounds, a.steps)
            ratios = [r / m for m, r in zip(mine, theirs, strict=True)]
            speeds = [tokens / statistics.median(x) for x in (mine, theirs)]
            ratio = statistics.median(ratios)
            print(
                f"{size} {data} dropout {dropout}: heedful {speeds[0]:,.0f} tokens/s, transformers {speeds[1]:,.0f}: "
                f"{ratio:.2f}× ({min(ratios):.2f}–{max(ratios):.2f})",
                flush=True,
            )
            spread = f"{min(ratios):.2f}–{max(ratios):.2f}"
            rows.append([size, data, dropout, round(speeds[0]), round(speeds[1]), f"{ratio:.2f}×", spread])
    if not a.no_save:
        rounded = a.precision == "bfloat16"
        columns = ["size", "lengths", "dropout", "heedful tokens/s", "transformers tokens/s", "ratio", "range"]
        write_results(
            RESULTS / ("pretrain_speed_bfloat16.json" if rounded else "pretrain_speed.json"),
            title="Pretraining speed" + (", bfloat16 mixed precision" if rounded else ""),
            what="Tokens per second of training steps, beside transformers' BertForPreTraining; 128 tokens, batch 32",
            tables=[Table(columns, rows)],
            arguments=f"--rounds {a.rounds} --steps {a.steps}" + (" --precision bfloat16" if rounded else ""),
        )


if __name__ == "__main__":
    main()
