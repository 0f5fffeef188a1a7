"""Features of texts: which layers, how they are joined, and what becomes one vector.

The pure part of `embed`: from an encoder's hidden states of one batch to the vectors of its texts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.errors import HeedfulError
from heedful.models.encoder import Encoder, EncoderConfig
from heedful.nn.pooling import COMBINATIONS, POOLINGS, combine, pool
from heedful.schema import Batch

Vectors = NDArray[np.float32]

LEAST_NORM = 1e-12  # so that a vector of zeros stays one
UNITS = ("sentence", "word", "token")


@dataclass(frozen=True)
class Features:
    """What to compute for each text."""

    layers: tuple[int, ...] = (-1,)
    combine: str = "concat"  # how several layers become one vector
    pooling: str = "mean"  # how the tokens of a sentence, or the pieces of a word, become one vector
    unit: str = "sentence"  # a vector for the sentence, for each word, or for each token ([CLS] and [SEP] included)
    normalize: bool = False  # to length 1
    prompt: str = ""  # put before each text
    dense: int = 0  # the width that the folder's linear layers give to a sentence's vector; 0 to leave them out

    def __post_init__(self) -> None:
        _check("combine", self.combine, COMBINATIONS)
        _check("pooling", self.pooling, POOLINGS)
        _check("unit", self.unit, UNITS)
        if not self.layers:
            raise HeedfulError("no layer is asked for", remedy="name at least one, such as -1 for the last")
        if self.prompt and self.unit != "sentence":
            raise HeedfulError(f"a prompt for each {self.unit}", remedy="prompts are for vectors of whole sentences")

    def width(self, config: EncoderConfig) -> int:
        """The length of one vector."""
        if self.dense:
            return self.dense
        layers = len(self.layers) if self.combine == "concat" else 1
        halves = 2 if self.pooling == "mean-max" and self.unit != "token" else 1
        return config.width * layers * halves


@dataclass(frozen=True)
class Pieces:
    """One text as the model sees it."""

    ids: list[int]
    words: list[
        int | None
    ]  # the number of the word each piece belongs to; None for [CLS] and [SEP]; empty if not asked
    truncated: bool


def features_of(
    encoder: Encoder, batch: Batch, texts: Sequence[Pieces], wanted: Features, dense: nn.Module | None = None
) -> list[Vectors]:
    """The vectors of each text of a batch: (width,) for a sentence, (units, width) for words and tokens.

    `dense` are linear layers for the vectors of sentences, if they are wanted.
    """
    hidden = encoder(batch, hidden=wanted.layers).hidden
    states = combine([hidden[encoder.layer_number(i)] for i in wanted.layers], wanted.combine)
    if wanted.unit == "sentence":
        if len(texts) == 1 and wanted.pooling == "mean" and not wanted.dense and states.device.type == "cpu":
            return [_mean_of_lone(states, wanted)]
        pooled = pool(states, batch.lengths, wanted.pooling)
        return list(_finish(dense(pooled) if wanted.dense and dense is not None else pooled, wanted))
    if wanted.unit == "word":
        return _word_vectors(states, texts, wanted)
    return np.split(_finish(states, wanted), np.cumsum(batch.lengths)[:-1])


def _word_vectors(states: Tensor, texts: Sequence[Pieces], wanted: Features) -> list[Vectors]:
    """Pool the pieces of every word. [CLS], [SEP] and what belongs to no word are left out."""
    keep = torch.tensor([word is not None for text in texts for word in text.words], device=states.device)
    runs = [[len(list(pieces)) for word, pieces in groupby(text.words) if word is not None] for text in texts]
    lengths = [n for run in runs for n in run]
    vectors = _finish(pool(states[keep], lengths, wanted.pooling), wanted)
    return np.split(vectors, np.cumsum([len(run) for run in runs])[:-1])


def _mean_of_lone(states: Tensor, wanted: Features) -> Vectors:
    """The vector of one text, such as a query, without the time that torch needs to begin each step."""
    rows: Vectors = states.numpy()
    mean: Vectors = np.add.reduce(rows, 0) / np.float32(len(rows))
    return mean / np.float32(max(math.sqrt(mean @ mean), LEAST_NORM)) if wanted.normalize else mean


def _finish(vectors: Tensor, wanted: Features) -> Vectors:
    if wanted.normalize:
        vectors = torch.nn.functional.normalize(vectors, dim=-1, eps=LEAST_NORM)
    return vectors.float().cpu().numpy()


def _check(name: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise HeedfulError(f"{name} is {value!r}", remedy=f"choose one of {', '.join(allowed)}")
