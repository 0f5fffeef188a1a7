"""What a pretraining run does where it is told nothing: the recipes, each a value for what was left open.

`small` is meant for small models that train for minutes or hours on a CPU: steps of 2,000 tokens, so that there are
many of them; a rate that needs an informed start; many tokens hidden, each a lesson; no dropout, since hardly a text
is seen twice; no pairs, since a step has sixteen of them and hundreds of hidden words, and at the rate that suits words
they stay at chance. Rate, spread, length, batch, warm-up and the share hidden were tried on a BERT-mini, short runs by
`benchmarks/pretrain_recipe.py` and some whole ones (docs/informed-start.md has the losses); the rest is a choice.
`bert` is that of the paper (Devlin et al., 2019, A.2).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from heedful.data.corpus.corpus import Corpus
from heedful.errors import HeedfulError
from heedful.models.encoder import EncoderConfig
from heedful.runs.pretraining.settings import PretrainingSettings
from heedful.tasks.objectives import settings_of_some
from heedful.tasks.pretraining_objective import PretrainingObjective

T = TypeVar("T")

SMALL: Mapping[str, Any] = {
    "init": "informed", "phases": "128:100%", "batch_size": 16, "mask_rate": 0.4, "pairs": "none", "warmup": 0.1,
    "pairs_share": 0.3, "dropout": 0.0,
}  # fmt: skip
BERT: Mapping[str, Any] = {
    "init": "random", "phases": "128:90%,512:10%", "batch_size": 256, "mask_rate": 0.15, "pairs": "nsp",
    "pairs_share": 1.0, "warmup": 0.01, "dropout": 0.1, "learning_rate": 1e-4,
}  # fmt: skip
# A trained model is not to be torn from what it knows: a low rate, and dropout as its folder has it.
CONTINUED: Mapping[str, Any] = {
    "init": "random", "phases": "128:100%", "batch_size": 16, "mask_rate": 0.15, "pairs": "none", "warmup": 0.1,
    "pairs_share": 1.0, "learning_rate": 1e-4,
}  # fmt: skip
RATE, SPREAD, WIDTH = 1e-3, 0.04, 256  # of `small`, and the width of the model on which they were tried


def completed(settings: PretrainingSettings, objective: PretrainingObjective, corpus: Corpus) -> PretrainingSettings:
    """The settings with what was left open filled in: first what suits the objective, then the recipe."""
    values = BERT if settings.recipe == "bert" else SMALL if settings.start is None else CONTINUED
    if settings.duplicates:  # examples written ahead have the pairs of the paper, where nothing else was said
        values = {**values, "pairs": BERT["pairs"], "pairs_share": BERT["pairs_share"]}
    idle = settings_of_some() - set(objective.settings) | objective.unused
    wanted = {**{name: value for name, value in values.items() if name not in idle}, **objective.defaults(corpus)}
    unset = {field.name for field in fields(settings) if getattr(settings, field.name) in (None, field.default)}
    found = replace(settings, **{name: value for name, value in wanted.items() if name in unset})
    if settings.pairs_share is not None and found.pairs == "none":
        raise HeedfulError(
            "`pairs_share` has no effect without pairs", remedy="leave it out, or say `pairs` nsp or sop"
        )
    return found


def rate_for(config: EncoderConfig, objective: PretrainingObjective, informed: bool) -> float:
    """The rate of `small`: what Adam moves is to matter alike at any width, so it falls as the width grows."""
    return RATE * min(1.0, WIDTH / config.width) * (1.0 if informed else objective.rate_from_random)


def shape_for(settings: PretrainingSettings, config: EncoderConfig) -> dict[str, Any]:
    """Fields of a new model's config that the recipe decides.

    A product with weights of BERT's spread, 0.02, shrinks a state to 0.02 √D of its length: to half at the width of
    BERT-base, to a third at that of a mini, where the layers then have little to say at first. So the spread of `small`
    grows as the width falls. Other families have starts of their own.
    """
    if settings.recipe == "bert" or config.model_type != "bert":
        return {}
    return {"initializer_range": round(SPREAD * math.sqrt(WIDTH / config.width), 4)}


def said(value: T | None) -> T:
    """A setting that has been filled in."""
    assert value is not None
    return value
