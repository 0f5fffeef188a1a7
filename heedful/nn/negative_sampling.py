"""word2vec's two objectives with negative sampling, as products of matrices: Mikolov et al., 2013.

    skip-gram   log σ(v'_o · v_i)  +  Σ_k log σ(-v'_k · v_i)      for each word o in the window of i
    CBOW        log σ(v'_i · h)    +  Σ_k log σ(-v'_k · h)        h the mean of the vectors in the window of i

Words stand in blocks of neighbours. A block's inputs times the outputs around it give the scores of all its windows at
once; those outside of a window are masked, which costs less than to pick the pairs one by one. The words of a block
share their negatives: `drawn` of them instead of the `negatives` that each pair would draw for itself, each of them
counted `negatives` / `drawn` times, so that the expected gradient is the same.

The gradient is written out here: only the rows that occur are read and moved, once for a few hundred words, so that
frequent words are moved often and not far. As in the original, CBOW adds the gradient of h whole to each vector.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

BLOCK = 32  # words, a row of the products
Architecture = Literal["skip-gram", "cbow"]


@dataclass(frozen=True)
class Sampling:
    """What does not change during a run."""

    architecture: Architecture = "skip-gram"
    window: int = 5
    negatives: int = 5


@dataclass(frozen=True)
class Windows:
    """M blocks of BLOCK neighbours, with `window` words more on both sides."""

    words: Tensor  # (window + M * BLOCK + window,) ids
    sentences: Tensor  # the same: windows end where this changes
    reach: Tensor  # the same: how far the window around each word goes, 1 … window; 0 for what only fills up
    negatives: Tensor  # (M, drawn) ids

    @property
    def blocks(self) -> int:
        """M."""
        return len(self.negatives)

    def part(self, start: int, stop: int, window: int) -> Windows:
        """The blocks start … stop."""
        cut = slice(start * BLOCK, stop * BLOCK + 2 * window)
        return Windows(self.words[cut], self.sentences[cut], self.reach[cut], self.negatives[start:stop])

    def to(self, device: str) -> Windows:
        """The same on another device."""
        return Windows(*(x.to(device) for x in (self.words, self.sentences, self.reach, self.negatives)))


@dataclass(frozen=True)
class Loss:
    """The sum over some windows, and how many pairs of words it is of."""

    total: float = 0.0
    pairs: float = 0.0

    def __add__(self, other: Loss) -> Loss:
        return Loss(self.total + other.total, self.pairs + other.pairs)


def update(
    inputs: Tensor, outputs: Tensor, windows: Windows, how: Sampling, rate: float, measured: bool = True
) -> Loss:
    """Move the rows of `inputs` and `outputs`, (V, D) each, that the windows concern; gives the loss if `measured`."""
    step = _skip_gram if how.architecture == "skip-gram" else _cbow
    return step(inputs, outputs, windows, how, rate, measured)


def _skip_gram(inputs: Tensor, outputs: Tensor, windows: Windows, how: Sampling, rate: float, measured: bool) -> Loss:
    """Each word of a block is the input to all words in whose window it stands."""
    near, centres = _around(windows, how.window)  # (M, BLOCK + 2 window), (M, BLOCK)
    pairs = _mask(windows, how.window, reach_of="near")  # (M, BLOCK, BLOCK + 2 window)
    targets = torch.cat([near, windows.negatives], 1)
    v = inputs[centres]  # (M, BLOCK, D)
    o = outputs[targets]  # (M, BLOCK + 2 window + drawn, D)
    scores = torch.bmm(v, o.transpose(1, 2))
    counts = pairs.sum(2, keepdim=True)
    weights = torch.cat([pairs, counts.expand(-1, -1, windows.negatives.shape[1]) * _share(windows, how)], 2)
    labels = torch.cat([pairs, torch.zeros_like(weights[:, :, pairs.shape[2] :])], 2)
    loss = _loss(scores, labels, weights, counts) if measured else Loss()
    g = (labels - scores.sigmoid_() * weights).mul_(rate)
    _add(inputs, centres, torch.bmm(g, o))
    _add(outputs, targets, torch.bmm(g.transpose(1, 2), v))
    return loss


def _cbow(inputs: Tensor, outputs: Tensor, windows: Windows, how: Sampling, rate: float, measured: bool) -> Loss:
    """The mean of the words in the window of a word is the input to it."""
    near, centres = _around(windows, how.window)
    pairs = _mask(windows, how.window, reach_of="centre")
    counts = pairs.sum(2, keepdim=True)
    there = (counts > 0).float()  # a word alone in its sentence has nothing to be told from
    v = inputs[near]
    h = torch.bmm(pairs / counts.clamp(min=1), v)  # (M, BLOCK, D)
    own, o = outputs[centres], outputs[windows.negatives]
    scores = torch.cat([(h * own).sum(2, keepdim=True), torch.bmm(h, o.transpose(1, 2))], 2)
    weights = torch.cat([there, there.expand(-1, -1, o.shape[1]) * _share(windows, how)], 2)
    labels = torch.cat([there, torch.zeros_like(weights[:, :, 1:])], 2)
    loss = _loss(scores, labels, weights, there) if measured else Loss()
    g = (labels - scores.sigmoid_() * weights).mul_(rate)
    of_h = g[:, :, :1] * own + torch.bmm(g[:, :, 1:], o)
    _add(inputs, near, torch.bmm(pairs.transpose(1, 2), of_h))
    _add(outputs, centres, g[:, :, :1] * h)
    _add(outputs, windows.negatives, torch.bmm(g[:, :, 1:].transpose(1, 2), h))
    return loss


def _around(windows: Windows, window: int) -> tuple[Tensor, Tensor]:
    """The words around and in each block, (M, BLOCK + 2 window), and those in it, (M, BLOCK)."""
    near = windows.words.unfold(0, BLOCK + 2 * window, BLOCK)
    return near, near[:, window : window + BLOCK]


def _mask(windows: Windows, window: int, reach_of: Literal["near", "centre"]) -> Tensor:
    """1 where a word of a block and one around it are in one window, that of the one or of the other."""
    sentences, reach = (x.unfold(0, BLOCK + 2 * window, BLOCK) for x in (windows.sentences, windows.reach))
    inner = slice(window, window + BLOCK)
    places = torch.arange(BLOCK + 2 * window, device=reach.device)
    distance = (places[inner, None] - places[None, :]).abs()  # (BLOCK, BLOCK + 2 window)
    reaches = reach[:, None, :] if reach_of == "near" else reach[:, inner, None]
    real = (reach[:, inner, None] > 0) & (reach[:, None, :] > 0)
    same = sentences[:, inner, None] == sentences[:, None, :]
    return ((distance <= reaches) & (distance > 0) & same & real).float()


def _share(windows: Windows, how: Sampling) -> float:
    return how.negatives / windows.negatives.shape[1]


def _loss(scores: Tensor, labels: Tensor, weights: Tensor, counts: Tensor) -> Loss:
    # weight * softplus(s) - label * s is -log σ(s) where the label is the weight, and -log σ(-s) where it is 0.
    return Loss(float((weights * F.softplus(scores) - labels * scores).sum()), float(counts.sum()))


def _add(matrix: Tensor, rows: Tensor, changes: Tensor) -> None:
    matrix.index_add_(0, rows.reshape(-1), changes.reshape(-1, matrix.shape[1]))
