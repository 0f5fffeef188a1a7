"""What encoders are pretrained on, by name; a run asks the family of its model which of these it has.

objective = objective_of(family)             # BERT's is "mlm"
Trainer(model, objective.in_run(model, batch_size, recipe), source, …)
"""

from __future__ import annotations

from typing import Any

from heedful.checkpoints.family import Family
from heedful.errors import HeedfulError
from heedful.tasks.bilm import BilmObjective
from heedful.tasks.causal_objective import CausalObjective, LaneObjective
from heedful.tasks.masked_objective import MaskedObjective
from heedful.tasks.permutation import PermutationObjective
from heedful.tasks.pretraining_objective import PretrainingObjective
from heedful.tasks.word2vec_objective import Word2VecObjective

MLM = MaskedObjective()
CAUSAL = CausalObjective()
BPTT = LaneObjective()
PERMUTATION = PermutationObjective()
BILM = BilmObjective()
WORD2VEC = Word2VecObjective()

_OURS = (MLM, CAUSAL, BPTT, PERMUTATION, BILM, WORD2VEC)
_known: dict[str, PretrainingObjective] = {objective.name: objective for objective in _OURS}


def register_objective(objective: PretrainingObjective) -> None:
    """Make an objective known to this process; it may take the place of one of ours."""
    _known[objective.name] = objective


def objective_of(family: Family[Any], name: str | None = None) -> PretrainingObjective:
    """The objective of this name, which the family must have; without a name, its first."""
    chosen = family.objective(name)
    if chosen not in _known:
        raise HeedfulError(f"there is no objective {chosen!r}", remedy=f"the objectives are {', '.join(_known)}")
    return _known[chosen]


def settings_of_some() -> set[str]:
    """The settings of a run that mean something to some objective only."""
    return {setting for objective in _known.values() for setting in objective.settings}
