"""Translation: at each place the decoder is to say the next symbol, given the source and the right symbols before."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.checkpoints.translation_folder import TranslationModel
from heedful.data.bitext.source import TRANSLATION, BitextMicroBatch
from heedful.errors import HeedfulError
from heedful.models.transformer import Transformer
from heedful.nn.cross_entropy import summed_cross_entropy
from heedful.nn.hard_attention import score_function_term


@dataclass(frozen=True)
class Forcing:
    """How often an RNN is given the right previous word in training and not its own: first, last, straight between."""

    first: float = 1.0
    last: float = 1.0

    def __post_init__(self) -> None:
        if not (0 <= self.first <= 1 and 0 <= self.last <= 1):
            what = f"teacher forcing from {self.first:g} to {self.last:g}"
            raise HeedfulError(what, remedy="use shares from 0 to 1")

    def at(self, step: int, steps: int) -> float:
        """The share at a step, counted from 0, of so many."""
        done = min(step / max(steps - 1, 1), 1.0)
        return self.first + (self.last - self.first) * done


class TranslationObjective:
    """What a trainer minimises: the cross-entropy with smoothed labels, summed over the M symbols to be said.

        - Σ_m ( (1 - ε) log p(y_m) + ε · 1/V Σ_v log p(v) )

    What an RNN draws in training (which words are given to it, where hard attention looks) comes from torch's own
    generator, which the trainer sets before every micro-batch.
    """

    def __init__(self, smoothing: float, forcing: Forcing | None = None, steps: int = 1) -> None:
        self.smoothing, self.forcing, self.steps = smoothing, forcing or Forcing(), steps

    def __call__(self, model: nn.Module, micro_batch: Any) -> Mapping[str, Tensor]:
        """The loss of a micro-batch of pairs."""
        assert isinstance(model, TranslationModel) and isinstance(micro_batch, BitextMicroBatch)
        bitext = micro_batch.bitext
        if isinstance(model, Transformer):
            return {TRANSLATION: summed_cross_entropy(model.logits(model(bitext)), bitext.labels, self.smoothing)}
        chance = (self.forcing.at(micro_batch.step, self.steps), torch.default_generator)
        if not model.draws:
            logits = model.logits(model(bitext, *chance))
            return {TRANSLATION: summed_cross_entropy(logits, bitext.labels, self.smoothing)}
        states, log_probabilities = model.drawn(bitext, *chance)
        logits = model.logits(states)
        losses = F.cross_entropy(logits.float(), bitext.labels, reduction="none", label_smoothing=self.smoothing)
        term = score_function_term(losses, log_probabilities, bitext.target.lengths)
        return {TRANSLATION: losses.sum() + term}


def mean_loss(model: TranslationModel, micro_batches: Iterable[BitextMicroBatch]) -> float:
    """The cross-entropy of a symbol, without smoothing, in the mean over all that are to be said."""
    total, count = 0.0, 0
    for micro_batch in micro_batches:
        bitext = micro_batch.bitext.to(device_of(model))
        with torch.inference_mode():
            total += float(summed_cross_entropy(model.logits(model(bitext)), bitext.labels))
        count += len(bitext.labels)
    return total / count if count else math.nan


def device_of(model: nn.Module) -> str:
    """Where a model's weights are."""
    return str(next(model.parameters()).device)
