"""Training speed against `transformers`: XLNetLMHeadModel and ours, in turns, on the same permutations.

    python benchmarks/xlnet.py [--sizes tiny,mini] [--rounds 5] [--steps 4] [--precision bfloat16]

The same weights, texts, orders, predicted tokens (one in six), dropout, clipping and denormal setting on both sides,
128 tokens, batch 32, vocabulary 8,000 and 30,522. Each round times a few steps of one side and then of the other; the
figure is the median over rounds of the ratio of tokens per second. Before the clock starts, the losses of both on the
first batch, without dropout, must be equal to 1e-4. Batches are random tokens. The reference's optimiser is torch's
AdamW, fused, as `transformers` configures it by default.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import torch
import torch.nn.functional as F
from results_file import RESULTS, Table, write_results
from transformers import XLNetLMHeadModel

from heedful.checkpoints.encoder_folder import save_model
from heedful.data.batching import flat_batch
from heedful.data.corpus.permuted import PermutedMicroBatch
from heedful.models.xlnet import initialise, sized
from heedful.models.xlnet_lm import XlnetForPretraining
from heedful.tasks.objectives import PERMUTATION
from heedful.training.distributed import World
from heedful.training.optimiser import Optimiser
from heedful.training.step import Stepper
from heedful.training.timing import Clock
from heedful.training.training_config import Precision, TrainingConfig

LENGTH, BATCH, ONE_IN, CLIP = 128, 32, 6, 1.0


def micro_batch(rng: torch.Generator, vocabulary: int) -> PermutedMicroBatch:
    """Random tokens, [SEP] [CLS] segments at the end, and a random order whose last sixth is predicted."""
    ids = torch.randint(5, vocabulary, (BATCH, LENGTH), generator=rng)
    segments = torch.zeros_like(ids)
    segments[:, -1] = 2
    text, predicted = LENGTH - 2, (LENGTH - 2) // ONE_IN
    ranks = torch.stack([torch.randperm(text, generator=rng) for _ in range(BATCH)])
    order = F.pad((ranks - (text - predicted)).clamp(min=-1), (0, 2), value=-1).flatten()
    targets = (order >= 0).nonzero()[:, 0]
    batch = flat_batch(ids.tolist(), segments.tolist())
    return PermutedMicroBatch(batch, order, targets, batch.ids[targets], 0)


def padded(one: PermutedMicroBatch) -> dict[str, torch.Tensor]:
    """The same batch as Hugging Face wants it."""
    order = one.order.view(BATCH, LENGTH)
    places = one.targets.view(BATCH, -1) % LENGTH
    return {
        "input_ids": one.batch.ids.view(BATCH, LENGTH),
        "token_type_ids": one.batch.segments.view(BATCH, LENGTH),
        "perm_mask": (order[:, None, :] >= order.clamp(min=0)[:, :, None]).float(),
        "target_mapping": F.one_hot(places, LENGTH).float(),
        "labels": one.labels.view(BATCH, -1),
    }


def models(size: str, vocabulary: int, dropout: float) -> tuple[XlnetForPretraining, XLNetLMHeadModel]:
    """Both sides with the same weights."""
    config = sized(size, vocabulary).with_dropout(dropout)
    ours = XlnetForPretraining(config)
    initialise(ours, config, seed=0)
    with tempfile.TemporaryDirectory() as folder:
        save_model(ours, Path(folder) / "model", None)
        return ours, XLNetLMHeadModel.from_pretrained(Path(folder) / "model")


def check_equal(ours: XlnetForPretraining, theirs: XLNetLMHeadModel, one: PermutedMicroBatch) -> None:
    """Stop if the two do not compute the same loss."""
    with torch.no_grad():
        mine = float(PERMUTATION.losses(ours.eval(), one)["permutation"]) / len(one.labels)
        reference = float(theirs.eval()(**padded(one)).loss)
    if abs(mine - reference) > 1e-4:
        raise SystemExit(f"the losses differ: {mine} here, {reference} there")


def steps_of(
    ours: XlnetForPretraining, theirs: XLNetLMHeadModel, precision: Precision, batches: list[PermutedMicroBatch]
) -> list[Callable[[int], None]]:
    """Functions that train one step of each side."""
    recipe = TrainingConfig(steps=10**6, clip=CLIP, precision=precision)
    stepper = Stepper(ours.train(), PERMUTATION.losses, Optimiser(ours, recipe), recipe, World(), Clock(), lambda: None)
    given = [padded(batch) for batch in batches]
    theirs.train()
    optimiser = torch.optim.AdamW(theirs.parameters(), lr=1e-4, weight_decay=0.01, fused=True)

    def mine(number: int) -> None:
        stepper.take(number, [batches[number % len(batches)]])

    def reference(number: int) -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            loss = theirs(**given[number % len(given)]).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), CLIP)
        optimiser.step()
        optimiser.zero_grad()

    return [mine, reference]


def race(
    size: str, vocabulary: int, dropout: float, precision: Precision, rounds: int, steps: int
) -> list[list[float]]:
    """Seconds of each round of both sides."""
    rng = torch.Generator().manual_seed(0)
    batches = [micro_batch(rng, vocabulary) for _ in range(steps)]
    ours, theirs = models(size, vocabulary, dropout)
    check_equal(ours, theirs, batches[0])
    sides = steps_of(ours, theirs, precision, batches)
    times: list[list[float]] = [[], []]
    for side in sides:
        side(0)
    for _ in range(rounds):
        for side, seconds in zip(sides, times, strict=True):
            start = time.perf_counter()
            for number in range(steps):
                side(number)
            seconds.append(time.perf_counter() - start)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="tiny,mini")
    parser.add_argument("--vocabularies", default="8000,30522")
    parser.add_argument("--dropouts", default="0.1,0.0")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--precision", choices=get_args(Precision), default="float32")
    parser.add_argument("--no-save", action="store_true", help="print only")
    a = parser.parse_args()
    torch.set_flush_denormal(True)
    rows = []
    for size in a.sizes.split(","):
        for vocabulary in map(int, a.vocabularies.split(",")):
            for dropout in map(float, a.dropouts.split(",")):
                mine, theirs = race(size, vocabulary, dropout, a.precision, a.rounds, a.steps)
                ratios = [r / m for m, r in zip(mine, theirs, strict=True)]
                speeds = [a.steps * BATCH * LENGTH / statistics.median(seconds) for seconds in (mine, theirs)]
                spread = f"{statistics.median(ratios):.2f}× ({min(ratios):.2f}–{max(ratios):.2f})"
                rows.append([size, vocabulary, dropout, f"{speeds[0]:,.0f}", f"{speeds[1]:,.0f}", spread])
                print(*rows[-1], sep="  ", flush=True)
    if a.no_save:
        return
    columns = ["size", "vocabulary", "dropout", "heedful, tokens/s", "transformers, tokens/s", "ratio"]
    name = "xlnet_training.json" if a.precision == "float32" else f"xlnet_training_{a.precision}.json"
    what = f"Training steps on the same permutations, {a.precision}; the ratio is the median over rounds."
    write_results(RESULTS / name, "XLNet: training speed", what, [Table(columns, rows)])


if __name__ == "__main__":
    main()
