"""What a translation model thinks of translations that are given to it: how probable they are, and what they look at.

The decoder is given the right symbols and asked for each next one, so that all of them are computed at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from heedful.checkpoints.translation_folder import TranslationFolder
from heedful.data.batching import TOKENS_PER_BATCH, cut_in_order
from heedful.data.bitext.pairs import lay_out
from heedful.schema import Bitext
from heedful.tasks.translate import device_of
from heedful.text.piece_labels import piece_labels
from heedful.text.tokenizer import was_truncated

Ids = Sequence[int]
Weights = NDArray[np.float32]


@dataclass(frozen=True)
class PairScore:
    """The log-probability of a translation given its source, over its symbols with the end symbol."""

    log_probability: float
    symbols: int
    truncated: bool = False  # whether a side was longer than the model and was cut


@dataclass(frozen=True)
class Alignment:
    """How much each piece of a translation, the end symbol last, looked at each piece of the source."""

    source: list[str]
    target: list[str]
    weights: Weights  # (target, source)


@dataclass(frozen=True)
class EncodedSides:
    """The two sides of pairs as ids, and which pairs were cut."""

    sources: Sequence[Ids]
    targets: Sequence[Ids]
    truncated: list[bool]

    def batches(self) -> Iterator[tuple[list[int], Bitext]]:
        """Pair numbers and their pairs, laid out with the longest first."""
        sizes = [len(source) + len(target) for source, target in zip(self.sources, self.targets, strict=True)]
        order = sorted(range(len(sizes)), key=lambda i: (-len(self.sources[i]), -len(self.targets[i])))
        for numbers in cut_in_order(order, sizes, TOKENS_PER_BATCH):
            yield numbers, lay_out([self.sources[i] for i in numbers], [self.targets[i] for i in numbers])


def encode_sides(folder: TranslationFolder, pairs: Sequence[tuple[str, str]]) -> EncodedSides:
    """The ids of sources and targets, cut to what the model can hold."""
    sides = [
        tokenizer.encode_batch([pair[side] for pair in pairs], folder.max_length, offsets=False)
        for side, tokenizer in enumerate(folder.sides)
    ]
    cut = [any(map(was_truncated, pair)) for pair in zip(*sides, strict=True)]
    sources, targets = ([encoding.ids for encoding in side] for side in sides)
    return EncodedSides(sources, targets, cut)


def score_pairs(folder: TranslationFolder, pairs: EncodedSides) -> list[PairScore]:
    """The scores of pairs, in order."""
    found: dict[int, PairScore] = {}
    for numbers, bitext in pairs.batches():
        for number, total, length in zip(
            numbers, _log_probabilities(folder, bitext), bitext.target.lengths, strict=True
        ):
            found[number] = PairScore(total, length, pairs.truncated[number])
    return [found[number] for number in range(len(found))]


def align_pairs(folder: TranslationFolder, pairs: EncodedSides, layer: int, head: int | None) -> list[Alignment]:
    """The alignments of pairs, in order, by a layer and a head of the decoder, or by the mean of its heads."""
    found: dict[int, Alignment] = {}
    for numbers, bitext in pairs.batches():
        with torch.inference_mode():
            maps = folder.model.alignments(bitext.to(device_of(folder.model)), layer, head)
        for number, weights in zip(numbers, maps, strict=True):
            source = piece_labels(folder.sides.source, pairs.sources[number])
            target = piece_labels(folder.sides.target, pairs.targets[number][1:])
            found[number] = Alignment(source, target, weights.cpu().numpy())
    return [found[number] for number in range(len(found))]


def _log_probabilities(folder: TranslationFolder, bitext: Bitext) -> list[float]:
    with torch.inference_mode():
        bitext = bitext.to(device_of(folder.model))
        logits = folder.model.logits(folder.model(bitext))
        chosen = logits.gather(1, bitext.labels[:, None])[:, 0] - logits.logsumexp(1)
        return [float(part.sum()) for part in torch.split(chosen.double(), list(bitext.target.lengths))]
