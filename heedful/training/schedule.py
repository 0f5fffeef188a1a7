"""The learning rate over the steps, as a factor of its peak."""

from __future__ import annotations

import math

from heedful.training.training_config import TrainingConfig


def rate_factor(step: int, config: TrainingConfig) -> float:
    """The factor of step 1 … steps: a straight warm-up to 1, then down to 0 just past the last step.

    "inverse_sqrt" is the Transformer's: d^-0.5 · min(step^-0.5, step · warmup^-1.5) is this factor times the peak
    that `transformer_peak` gives.
    """
    warmup = config.warmup_steps
    if step <= warmup:
        return step / warmup
    if config.schedule == "constant":
        return 1.0
    if config.schedule == "inverse_sqrt":
        return math.sqrt(max(warmup, 1) / step)
    done = (step - warmup) / (config.steps + 1 - warmup)
    return 1.0 - done if config.schedule == "linear" else 0.5 * (1.0 + math.cos(math.pi * done))


def transformer_peak(width: int, warmup: int) -> float:
    """The highest rate of Vaswani et al. 2017, d^-0.5 · warmup^-0.5, reached at the end of the warm-up."""
    return 1 / math.sqrt(width * warmup)
