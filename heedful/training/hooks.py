"""What else a run does while a trainer trains."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from heedful.training.events import Event
from heedful.training.optimiser import RateScale


@dataclass(frozen=True)
class Hooks:
    """What else a run does. Rank 0 alone evaluates, tells and saves."""

    evaluate: Callable[[nn.Module], Mapping[str, float]] | None = None  # the model is in eval mode, without gradients
    examples: Callable[[nn.Module], Sequence[Mapping[str, Any]]] | None = None  # to look at after an evaluation: JSON
    on_event: Callable[[Event], None] | None = None
    save_model: Callable[[Path], None] | None = None  # write the finished model to this folder
    rate_scale: RateScale | None = None  # a parameter's own share of the learning rate, by its name
