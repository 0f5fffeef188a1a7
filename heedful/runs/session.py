"""How a run is carried out, beside what it is told: nothing of it changes what comes out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Shown:
    """Whether a bar shows how far the work is: None shows it in a terminal or a notebook."""

    progress: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Session(Shown):
    """Whether a run goes on with the one in its folder, and who hears of it."""

    resume: bool = False
    on_event: Callable[[Any], object] | None = None  # the one callback: a heedful.training.events.Event each time
    tensorboard: bool = False  # write event files into the run's folder, for TensorBoard
