"""Trainers that are raced on Multi30k with a model of one size; asked for a precision, each takes a round of steps.

The same dropout, label smoothing, clipping and optimiser (fused AdamW), denormal numbers flushed by all. Batches are
made before.

    heedful                         our trainer on its own batches: flat, of sentences that are alike in length
    transformers (same batches)     MarianMTModel on the very same batches, padded
    transformers (random batches)   MarianMTModel on batches as Seq2SeqTrainer makes them if nothing else is asked for:
                                    the same number of sentences, drawn at random, padded to the longest
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from marian import marian_of, padded, transformer_in
from materials import multi30k

from heedful.checkpoints.translation_folder import TranslationFolder, load_translation
from heedful.data.bitext.pairs import EncodedPairs, Limits, bitext_of, encode_pairs
from heedful.data.bitext.reading import read_pairs
from heedful.data.bitext.source import BitextMicroBatch, BitextSource
from heedful.inference.load import model_path
from heedful.models.transformer import Transformer, initialise_transformer
from heedful.tasks.translate import TranslationObjective
from heedful.text.sides import Symbols
from heedful.training.distributed import World
from heedful.training.optimiser import Optimiser
from heedful.training.process import prepare_process
from heedful.training.step import Stepper
from heedful.training.timing import Clock
from heedful.training.training_config import Precision, TrainingConfig

SMOOTHING, CLIP, RATE = 0.1, 1.0, 1e-4

Step = Callable[[Any], None]
Round = Callable[[Precision], int]  # gives the number of tokens, without padding


def heedful(steps: int, batch_size: int, model: Path, scratch: Path) -> Round:
    """This project."""
    prepare_process()
    folder = load_translation(model_path(model))
    batches = sorted_batches(training_pairs(folder), steps, batch_size)
    return _rounds(partial(_our_step, folder), batches, batches)


def transformers_same(steps: int, batch_size: int, model: Path, scratch: Path) -> Round:
    """Marian on our batches."""
    folder = load_translation(model_path(model))
    return _marian(folder, sorted_batches(training_pairs(folder), steps, batch_size))


def transformers_random(steps: int, batch_size: int, model: Path, scratch: Path) -> Round:
    """Marian on batches at random."""
    folder = load_translation(model_path(model))
    return _marian(folder, random_batches(training_pairs(folder), steps, batch_size))


TRAINERS = {
    "heedful": heedful,
    "transformers (same batches)": transformers_same,
    "transformers (random batches)": transformers_random,
}


def training_pairs(folder: TranslationFolder) -> EncodedPairs:
    """Multi30k's training pairs in the pieces of a model."""
    return encode_pairs(read_pairs([multi30k("train.tsv.gz")], *folder.names).examples, folder.sides, Limits())[0]


def sorted_batches(pairs: EncodedPairs, steps: int, batch_size: int) -> list[BitextMicroBatch]:
    """The first batches of an epoch, as our training has them."""
    source = BitextSource(pairs, batch_size, seed=0)
    return [source.step(number)[0] for number in range(steps)]


def random_batches(pairs: EncodedPairs, steps: int, batch_size: int) -> list[BitextMicroBatch]:
    """As many pairs a batch as `batch_size` tokens hold on average, whatever their lengths."""
    count = max(1, round(batch_size / float(pairs.tokens.mean())))
    drawn = np.random.default_rng(0).permutation(len(pairs))[: steps * count]
    return [BitextMicroBatch(bitext_of(pairs, numbers.tolist())) for numbers in np.array_split(drawn, steps)]


def _marian(folder: TranslationFolder, micro_batches: Sequence[BitextMicroBatch]) -> Round:
    torch.set_flush_denormal(True)
    return _rounds(
        partial(_their_step, folder), micro_batches, [padded(micro_batch.bitext) for micro_batch in micro_batches]
    )


def _rounds(
    step_in: Callable[[Precision], Step], micro_batches: Sequence[BitextMicroBatch], batches: Sequence[Any]
) -> Round:
    """Each precision trains a model of its own on the batches, which hold the micro-batches."""
    steps: dict[Precision, Step] = {}

    def take(precision: Precision) -> int:
        if precision not in steps:
            steps[precision] = step_in(precision)
        for batch in batches:
            steps[precision](batch)
        return sum(micro_batch.tokens for micro_batch in micro_batches)

    return take


def _our_step(folder: TranslationFolder, precision: Precision) -> Step:
    model = Transformer(transformer_in(folder).config)
    initialise_transformer(model, seed=0)
    recipe = TrainingConfig(steps=10**6, clip=CLIP, learning_rate=RATE, precision=precision)
    objective, optimiser = TranslationObjective(SMOOTHING), Optimiser(model, recipe)
    stepper = Stepper(model.train(), objective, optimiser, recipe, World(), Clock(), lambda: None)

    def step(micro_batch: BitextMicroBatch) -> None:
        stepper.take(0, [micro_batch])

    return step


def _their_step(folder: TranslationFolder, precision: Precision) -> Step:
    model = marian_of(transformer_in(folder).config, Symbols.of(folder.sides.target)).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01, fused=True)

    def step(batch: Mapping[str, torch.Tensor]) -> None:
        given = dict(batch)
        labels = given.pop("labels")
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            logits = model(**given, use_cache=False).logits.float()
        torch.autograd.backward(F.cross_entropy(logits.flatten(0, 1), labels.flatten(), label_smoothing=SMOOTHING))
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()
        optimiser.zero_grad()

    return step
