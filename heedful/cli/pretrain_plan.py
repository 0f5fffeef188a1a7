"""What a pretraining run will do, worked out from the options before anything is trained, and kept in config.toml."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from heedful.data.corpus import Corpus
from heedful.data.examples import ExampleMaker, Recipe
from heedful.data.source import NumberedExamples, Phase, PretrainingSource
from heedful.data.written import WrittenExamples
from heedful.errors import HeedfulError
from heedful.models.encoder import EncoderConfig
from heedful.training.training_config import TrainingConfig

_BUDGET = re.compile(r"(\d+(?:\.\d+)?)\s*([kMB]?)(s|m|h|steps?|tokens?)")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_THOUSANDS = {"": 1.0, "k": 1e3, "M": 1e6, "B": 1e9}
_PHASE = re.compile(r"(\d+):(\d+(?:\.\d+)?)%")


@dataclass(frozen=True)
class Budget:
    """How long to train: one of the three is set."""

    seconds: float = 0.0
    steps: float = 0.0
    tokens: float = 0.0


@dataclass(frozen=True)
class Plan:
    """Everything that decides what comes out of a run."""

    corpus: str
    budget: str  # as it was asked for
    lengths: tuple[int, ...]  # of each phase: tokens of an example,
    shares: tuple[float, ...]  # its part of the steps,
    batch_sizes: tuple[int, ...]  # examples of a step,
    steps: tuple[int, ...]  # and how many steps
    recipe: Recipe
    training: TrainingConfig
    model: EncoderConfig
    start: str | None = None  # the model folder to go on from
    duplicates: int = 0  # train on the examples written ahead, each text masked so often; 0 makes them on the fly
    evaluated_examples: int = 512

    def source(self, corpus: Corpus) -> PretrainingSource:
        """The batches of the run."""
        phases = zip(self.lengths, self.steps, self.batch_sizes, strict=True)
        return PretrainingSource([Phase(self.examples(corpus, n), steps, size) for n, steps, size in phases])

    def examples(self, corpus: Corpus, length: int) -> NumberedExamples:
        """The training examples of one length."""
        recipe = replace(self.recipe, max_length=length)
        return WrittenExamples(corpus, recipe, self.duplicates) if self.duplicates else ExampleMaker(corpus, recipe)

    def held_out(self, corpus: Corpus) -> ExampleMaker:
        """The held-out examples, of the longest length trained on."""
        # Predicting more tokens from fewer is harder: the usual share for all, so that runs can be compared.
        recipe = replace(self.recipe, max_length=max(self.lengths), rate=Recipe.rate)
        return ExampleMaker(corpus, recipe, "held_out")

    def with_steps(self, steps: Sequence[int]) -> Plan:
        """The same plan with so many steps in each phase."""
        return replace(self, steps=tuple(steps), training=replace(self.training, steps=sum(steps)))


def parse_budget(text: str) -> Budget:
    """Read `30m`, `1.5h`, `90s`, `20000steps`, `20ksteps` or `50Mtokens`."""
    found = _BUDGET.fullmatch(text.strip())
    if not found:
        raise HeedfulError(f"the budget {text!r} is not understood", remedy="write 30m, 2h, 20000steps or 50Mtokens")
    number, thousands, unit = float(found[1]), _THOUSANDS[found[2]], found[3]
    if unit in _UNITS:
        if found[2]:
            raise HeedfulError(f"the budget {text!r} is not understood", remedy="write a time as 90s, 30m or 2h")
        return Budget(seconds=number * _UNITS[unit])
    return Budget(steps=number * thousands) if unit.startswith("step") else Budget(tokens=number * thousands)


def parse_phases(text: str) -> list[tuple[int, float]]:
    """Read `128:90%,512:10%`: lengths and their shares of the steps, which add up to 100 %."""
    found = [_PHASE.fullmatch(part.strip()) for part in text.split(",")]
    phases = [(int(f[1]), float(f[2]) / 100) for f in found if f]
    if len(phases) < len(found) or abs(sum(share for _, share in phases) - 1) > 1e-6:
        raise HeedfulError(
            f"the phases {text!r} are not understood", remedy="write 128:90%,512:10%, with shares that make 100%"
        )
    return phases


def batch_size_of(length: int, first_length: int, batch_size: int) -> int:
    """Longer examples come in smaller batches, so that a step keeps its number of tokens."""
    return max(1, round(batch_size * first_length / length))


def steps_of(
    budget: Budget, shares: Sequence[float], tokens: Sequence[int], seconds: Callable[[], Sequence[float]]
) -> list[int]:
    """The steps of each phase so that all of them use up the budget; `seconds` measures a step of each phase."""
    if budget.steps:
        total = budget.steps
    elif budget.tokens:
        total = budget.tokens / sum(share * n for share, n in zip(shares, tokens, strict=True))
    else:
        total = budget.seconds / sum(share * s for share, s in zip(shares, seconds(), strict=True))
    return [max(1, round(total * share)) for share in shares]
