"""The rungs: each kind of language model in the order of its invention, what it sees, and how it is trained."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_type_hints

from heedful.errors import HeedfulError
from heedful.models.sizes import TRANSFORMER_SIZES
from heedful.runs.ladder.settings import LadderSettings
from heedful.runs.overrides import typed
from heedful.runs.pretraining.settings import PretrainingSettings
from heedful.runs.settings import settings_from

# What minutes of training are best spent on: hidden tokens, more of them than the paper's, and no second objective.
SHORT_MASKED = {"pairs": "none", "mask_rate": 0.3}
SAME_FOR_ALL = ("corpus", "output", "model", "set", "budget", "size", "seed")


@dataclass(frozen=True)
class Rung:
    """One kind of model."""

    name: str
    family: str
    sees: str  # of the text around a word
    rate: float
    start: str = "random"
    recipe: Mapping[str, Any] = field(default_factory=dict)  # other settings of its pretraining
    static: bool = True  # whether its words have vectors before any context
    tokens_a_piece: int = 1  # how many tokens it takes for a piece of the others

    @property
    def reads_words(self) -> bool:
        """Whether it has a recipe of its own, with windows of words in place of examples of some length."""
        return self.family == "word2vec"


RUNGS = (
    Rung("word2vec", "word2vec", "nothing around it", 0.025),
    Rung("lstm-lm", "lstm-lm", "left", 1e-3),
    # Its tokens are the bytes of words, and its words have no vector but what is made of them.
    Rung("elmo", "elmo", "both, shallow", 1e-3, static=False, tokens_a_piece=8),
    Rung("gpt", "gpt2", "left", 5e-4),
    Rung("bert", "bert", "both, deep", 5e-4, recipe=SHORT_MASKED),
    Rung("xlnet", "xlnet", "both, deep", 5e-4),
    Rung("bert-informed", "bert", "both, deep", 1e-3, "informed", SHORT_MASKED),
)
NAMES = tuple(rung.name for rung in RUNGS)


def rungs_of(models: str | None) -> list[Rung]:
    """The rungs that are asked for, in their own order."""
    if models is None:
        return list(RUNGS)
    own = {rung.family: rung.name for rung in reversed(RUNGS)}  # gpt2, as `pretrain` has it, is gpt
    asked = [own.get(name.strip(), name.strip()) for name in models.split(",")]
    for name in asked:
        if name not in NAMES:
            near = difflib.get_close_matches(name, NAMES, n=1)
            remedy = f"did you mean {near[0]}?" if near else f"the models are {', '.join(NAMES)}"
            raise HeedfulError(f"there is no model {name!r} on the ladder", remedy=remedy)
    return [rung for rung in RUNGS if rung.name in asked]


def pretraining_of(rung: Rung, settings: LadderSettings) -> PretrainingSettings:
    """What the pretraining of a rung is told."""
    values: dict[str, Any] = {
        "corpus": settings.corpus,
        "output": Path(settings.output) / rung.name,
        "model": rung.family,
        "size": settings.size,
        "budget": settings.budget,
        "init": rung.start,
        "seed": settings.seed,
        "learning_rate": rung.rate,
        "eval_every": 0,  # the clock is for training
        "checkpoint_every": settings.checkpoint_every,
    }
    if rung.reads_words:
        width = {"vector_size": size[1]} if (size := TRANSFORMER_SIZES.get(settings.size)) else {}
        values |= {"set": width}
    else:
        values |= {"phases": settings.phases, "batch_size": settings.batch_size, "dropout": 0.0, **rung.recipe}
    return settings_from(PretrainingSettings, {**values, **own_settings(rung, settings.set)})


def own_settings(rung: Rung, told: Mapping[str, Any]) -> dict[str, Any]:
    """What `set` says of a rung: under its name, or of all."""
    hints = get_type_hints(PretrainingSettings)
    fields = [name for name in hints if name not in (*SAME_FOR_ALL, "_")]
    found = {}
    for key, value in told.items():
        model, _, name = key.rpartition(".")
        if model not in ("", *NAMES):
            raise HeedfulError(f"`set` {key}: there is no model {model!r}", remedy=f"they are {', '.join(NAMES)}")
        if name not in fields:
            near = difflib.get_close_matches(name, fields, n=1)
            remedy = f"did you mean {near[0]}?" if near else f"the fields are {', '.join(fields)}"
            raise HeedfulError(f"`set` {key}: pretraining has no such field", remedy=remedy)
        if model in ("", rung.name):
            found[name] = typed(name, value, hints[name], "`set`")
    return found
