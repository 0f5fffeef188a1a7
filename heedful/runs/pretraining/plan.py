"""What a pretraining run does, worked out from its settings before anything is trained, and kept in config.toml."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from heedful.config import from_mapping
from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.phases import Batches, Phase, PretrainingSource
from heedful.data.corpus.recipe import ExampleRecipe
from heedful.errors import HeedfulError
from heedful.models.encoder import EncoderConfig
from heedful.runs.budget import Budget
from heedful.runs.pretraining.recipes import said
from heedful.runs.pretraining.settings import PretrainingSettings
from heedful.runs.settings import resolved, storable
from heedful.tasks.objectives import settings_of_some
from heedful.tasks.pretraining_objective import PretrainingObjective
from heedful.training.training_config import TrainingConfig

# A step has hundreds of hidden words and one label for a pair: so many times the examples, where pairs come last.
MORE_WITH_PAIRS = 4
_PHASE = re.compile(r"([1-9]\d*)(?:x([1-9]\d*))?:(\d+(?:\.\d+)?)%")


class AskedPhase(NamedTuple):
    """A phase as a user writes it."""

    length: int
    share: float
    batch_size: int | None = None  # None: so that a step keeps its number of tokens


@dataclass(frozen=True)
class Stretch:
    """A part of the training with examples of one length."""

    length: int  # tokens of an example
    share: float  # of the steps
    batch_size: int  # examples of a step
    words_alone: bool = False  # without the pairs that come later

    def recipe(self, recipe: ExampleRecipe) -> ExampleRecipe:
        """How its examples are made, from that of the run."""
        return replace(recipe.without_pairs() if self.words_alone else recipe, max_length=self.length)


@dataclass(frozen=True)
class Plan:
    """Everything that decides what comes out of a run."""

    corpus: str
    budget: str  # as it was asked for
    lengths: tuple[int, ...]  # of each phase: tokens of an example,
    shares: tuple[float, ...]  # its part of the steps,
    batch_sizes: tuple[int, ...]  # examples of a step,
    steps: tuple[int, ...]  # and how many steps
    recipe: ExampleRecipe
    training: TrainingConfig
    model: EncoderConfig
    start: str | None = None  # the model folder to go on from
    init: str = "random"  # what a model without such a folder starts from
    duplicates: int = 0  # train on the examples written ahead, each text masked so often; 0 makes them on the fly
    evaluated_examples: int = 512
    words_first: int = 0  # so many of the phases have words alone, and pairs come after them

    def source(self, corpus: Corpus, objective: PretrainingObjective) -> PretrainingSource:
        """The batches of the run."""
        phases = [
            Phase(batches_of(objective, corpus, one.recipe(self.recipe), self.duplicates), steps, one.batch_size)
            for one, steps in zip(self.stretches, self.steps, strict=True)
        ]
        return PretrainingSource(phases, corpus.manifest["checksum"])

    @property
    def stretches(self) -> list[Stretch]:
        """The phases one by one."""
        phases = zip(self.lengths, self.shares, self.batch_sizes, strict=True)
        return [Stretch(*phase, words_alone=number < self.words_first) for number, phase in enumerate(phases)]

    @property
    def longest(self) -> ExampleRecipe:
        """The recipe at the longest length trained on, that of the held-out examples."""
        return replace(self.recipe, max_length=max(self.lengths))

    def with_steps(self, steps: Sequence[int]) -> Plan:
        """The same plan with so many steps in each phase."""
        return replace(self, steps=tuple(steps), training=replace(self.training, steps=sum(steps)))


def plan_of(
    settings: PretrainingSettings, objective: PretrainingObjective, model: EncoderConfig, steps: Sequence[int]
) -> Plan:
    """The plan of the settings with a model of this shape and so many steps in each phase."""
    phases = stretches(settings)
    return Plan(
        corpus=str(settings.corpus),
        budget=settings.budget,
        lengths=tuple(phase.length for phase in phases),
        shares=tuple(phase.share for phase in phases),
        batch_sizes=tuple(phase.batch_size for phase in phases),
        steps=tuple(steps),
        recipe=recipe_of(settings, objective),
        training=training_of(settings, sum(steps)),
        model=model,
        init=said(settings.init),
        start=None if settings.start is None else str(settings.start),
        duplicates=settings.duplicates,
        words_first=sum(phase.words_alone for phase in phases),
    )


def stretches(settings: PretrainingSettings) -> list[Stretch]:
    """The phases of the run, with the batch size of each.

    Where pairs have a part of the steps only, that is the last one, and phases are cut where it begins.
    """
    phases = parse_phases(said(settings.phases))
    first, size = phases[0].length, said(settings.batch_size)
    words = 0.0 if settings.pairs in (None, "none") else 1 - said(settings.pairs_share)
    found, begin = list[Stretch](), 0.0
    for length, share, asked in phases:
        alone = round(min(share, max(0.0, words - begin)), 6)
        rows = asked or batch_size_of(length, first, size)
        parts = [
            Stretch(length, alone, rows, words_alone=True),
            Stretch(length, round(share - alone, 6), rows * (MORE_WITH_PAIRS if words else 1)),
        ]
        found += [part for part in parts if part.share]
        begin += share
    return found


def told_phase(phase: Stretch) -> str:
    """What a step of a phase has, in words."""
    alone = ", words alone" if phase.words_alone else ""
    return f"{phase.batch_size} examples of up to {phase.length} tokens{alone}"


def recipe_of(settings: PretrainingSettings, objective: PretrainingObjective) -> ExampleRecipe:
    """How the objective's examples of the first length are made; settings that would have no effect are refused."""
    for name in sorted(settings_of_some() - set(objective.settings) | objective.unused):
        if name in storable(settings):
            what = f"`{name}` has no effect on a model of the type {settings.model}"
            raise HeedfulError(what, remedy="leave it out")
    own = {field: getattr(settings, name) for name, field in objective.settings.items() if field}
    values = {"max_length": stretches(settings)[0].length, "seed": settings.seed, **own}
    return from_mapping(objective.recipe, values, "settings")


def training_of(settings: PretrainingSettings, steps: int) -> TrainingConfig:
    """What the trainer is told."""
    return TrainingConfig(
        steps=steps,
        learning_rate=said(settings.learning_rate),
        warmup=said(settings.warmup),
        schedule=settings.schedule,
        weight_decay=settings.weight_decay,
        beta2=settings.beta2,
        clip=settings.clip,
        accumulate=settings.accumulate,
        precision=resolved(settings.precision),
        seed=settings.seed,
        eval_every=settings.eval_every,
        checkpoint_every=settings.checkpoint_every,
        shard=settings.shard,
    )


def batches_of(objective: PretrainingObjective, corpus: Corpus, recipe: ExampleRecipe, duplicates: int) -> Batches:
    """The training batches of one length, written ahead where there are duplicates, else made on the fly."""
    return objective.written_ahead(corpus, recipe, duplicates) if duplicates else objective.batches(corpus, recipe)


def parse_phases(text: str) -> list[AskedPhase]:
    """Read `128:90%,512:10%` or `128x8:50%,128x32:50%`: lengths, batch sizes, and shares that add up to 100 %."""
    found = [_PHASE.fullmatch(part.strip()) for part in text.split(",")]
    phases = [AskedPhase(int(f[1]), float(f[3]) / 100, int(f[2]) if f[2] else None) for f in found if f]
    if len(phases) < len(found) or abs(sum(phase.share for phase in phases) - 1) > 1e-6:
        raise HeedfulError(
            f"the phases {text!r} are not understood",
            remedy="write 128:90%,512:10%, or with batch sizes 128x8:50%,128x32:50%; the shares make 100%",
        )
    return phases


def batch_size_of(length: int, first_length: int, batch_size: int) -> int:
    """Longer examples come in smaller batches, so that a step keeps its number of tokens."""
    return max(1, round(batch_size * first_length / length))


def steps_of(
    budget: Budget,
    shares: Sequence[float],
    tokens: Sequence[int],
    seconds: Callable[[], Sequence[float]],
    size: int = 0,
) -> list[int]:
    """The steps of each phase so that all of them use up the budget; `seconds` measures a step of each phase.

    `size` is how many tokens an epoch has.
    """
    if budget.steps:
        total = budget.steps
    elif budget.tokens or budget.epochs:
        total = (budget.tokens or budget.epochs * size) / sum(
            share * n for share, n in zip(shares, tokens, strict=True)
        )
    else:
        total = budget.seconds / sum(share * s for share, s in zip(shares, seconds(), strict=True))
    return [max(1, round(total * share)) for share in shares]
