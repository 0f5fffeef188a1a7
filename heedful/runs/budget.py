"""How long to train: a time, a number of steps or of tokens, as people write them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from torch import nn

from heedful.errors import HeedfulError
from heedful.training.budget import steps_for
from heedful.training.contract import Objective, Source
from heedful.training.training_config import TrainingConfig

_BUDGET = re.compile(r"(\d+(?:\.\d+)?)\s*([kMB]?)(s|m|h|steps?|tokens?|epochs?)")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_THOUSANDS = {"": 1.0, "k": 1e3, "M": 1e6, "B": 1e9}


@dataclass(frozen=True)
class Budget:
    """How long to train: one of these is set."""

    seconds: float = 0.0
    steps: float = 0.0
    tokens: float = 0.0
    epochs: float = 0.0

    def without(self, seconds: float) -> Budget:
        """What is left of it after so long, but never nothing."""
        return replace(self, seconds=max(self.seconds - seconds, 1.0)) if self.seconds else self


def parse_budget(text: str) -> Budget:
    """Read `30m`, `1.5h`, `90s`, `20000steps`, `20ksteps`, `50Mtokens` or `3epochs`."""
    found = _BUDGET.fullmatch(text.strip())
    if not found:
        raise HeedfulError(
            f"the budget {text!r} is not understood", remedy="write 90s, 30m, 2h, 20000steps, 50Mtokens or 3epochs"
        )
    if not float(found[1]):
        raise HeedfulError(f"the budget {text!r} is nothing", remedy="give at least one step, as 1steps")
    number, thousands, unit = float(found[1]), _THOUSANDS[found[2]], found[3]
    if unit in _UNITS:
        if found[2]:
            raise HeedfulError(f"the budget {text!r} is not understood", remedy="write a time as 90s, 30m or 2h")
        return Budget(seconds=number * _UNITS[unit])
    return Budget(**{f"{unit.rstrip('s')}s": number * thousands})


def steps_of_budget(
    text: str, model: nn.Module, objective: Objective, source: Source, trial: TrainingConfig, spent: float = 0.0
) -> int:
    """How many steps a budget such as `30m` or `2000steps` is; a time is measured by a few steps of a `trial`.

    Of a time so many seconds are `spent` already.
    """
    budget = parse_budget(text).without(spent)
    if budget.tokens or budget.epochs:
        raise HeedfulError(
            "a budget in tokens or epochs is for pretraining", remedy="write 30m or 2000steps, or give `epochs`"
        )
    if budget.seconds:
        return steps_for(budget.seconds, model, objective, source, trial)
    return max(1, round(budget.steps))
