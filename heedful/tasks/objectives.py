"""What encoders are pretrained on, by name; a run asks the family of its model which of these it has.

objective = objective_of(family)             # BERT's is "mlm"
Trainer(model, objective.losses, source, …)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from heedful.checkpoints.family import Family
from heedful.data.corpus.examples import Examples, check_mask_tokens
from heedful.errors import HeedfulError
from heedful.tasks.pretraining import evaluate, filled_in, pretraining_losses
from heedful.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class PretrainingObjective:
    """Something to be learned from text alone."""

    name: str
    check: Callable[[Tokenizer], None]  # refuses a tokenizer that lacks what this needs, such as [MASK]
    losses: Callable[[nn.Module, Any], Mapping[str, Tensor]]  # the sum of each loss over a micro-batch
    evaluate: Callable[[nn.Module, Iterable[Any]], dict[str, float]]  # scores over held-out micro-batches
    shown: Callable[[nn.Module, Examples, Tokenizer], list[dict[str, Any]]]  # what the model makes of a few examples


MLM = PretrainingObjective("mlm", check_mask_tokens, pretraining_losses, evaluate, filled_in)

_known: dict[str, PretrainingObjective] = {objective.name: objective for objective in (MLM,)}


def register_objective(objective: PretrainingObjective) -> None:
    """Make an objective known to this process; it may take the place of one of ours."""
    _known[objective.name] = objective


def objective_of(family: Family[Any], name: str | None = None) -> PretrainingObjective:
    """The objective of this name, which the family must have; without a name, its first."""
    chosen = family.objective(name)
    if chosen not in _known:
        raise HeedfulError(f"there is no objective {chosen!r}", remedy=f"the objectives are {', '.join(_known)}")
    return _known[chosen]
