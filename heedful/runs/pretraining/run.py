"""The composition of a pretraining run: corpus, model, objective, evaluation, and what is left at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from torch import nn

from heedful.checkpoints.families import family_named
from heedful.checkpoints.family import Family
from heedful.checkpoints.folder import read_folder
from heedful.checkpoints.int8_scheme import refuse_training
from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.phases import Phase, PretrainingSource
from heedful.errors import HeedfulError
from heedful.models.encoder import EncoderConfig, check_room
from heedful.models.informed_start import inform
from heedful.runs.budget import parse_budget
from heedful.runs.overrides import overridden
from heedful.runs.pretraining.card import write_card
from heedful.runs.pretraining.held_out import HeldOut
from heedful.runs.pretraining.plan import (
    Plan,
    Stretch,
    batches_of,
    plan_of,
    recipe_of,
    steps_of,
    stretches,
    told_phase,
    training_of,
)
from heedful.runs.pretraining.recipes import completed, rate_for, said, shape_for
from heedful.runs.pretraining.settings import PretrainingSettings
from heedful.runs.pretraining.skip_gram_start import counted
from heedful.runs.run import Ready, Run, Stage, carry_out
from heedful.runs.settings import Place
from heedful.runs.sharding import check_sharding
from heedful.tasks.objectives import objective_of
from heedful.tasks.pretraining_objective import PretrainingObjective
from heedful.training.budget import RESERVE, TRIAL_STEPS, seconds_per_step


def pretrain(settings: PretrainingSettings, stage: Stage) -> Run:
    """Train as the settings say."""
    return carry_out(prepare, settings, stage)


def prepare(settings: PretrainingSettings, stage: Stage) -> Ready:
    """Open the corpus, build the model and count the steps."""
    parse_budget(settings.budget)  # what is not understood is told before anything is computed
    corpus = Corpus.open(settings.corpus)
    family = family_named(settings.model) if settings.start is None else read_folder(settings.start).family
    objective = objective_of(family)
    _check_init(settings, family)
    settings = completed(_in_its_precision(settings, objective, stage), objective, corpus)
    recipe_of(replace(settings, model=family.model_type), objective)
    check_sharding(settings, stage.resume)
    objective.check(corpus)
    config = _model_config(settings, corpus, objective)
    settings = replace(settings, init=_init(settings, family))
    rate = settings.learning_rate or rate_for(config, objective, settings.init == "informed")
    settings = replace(settings, learning_rate=rate)
    # What cannot be trained on is told before the minutes that a start may take.
    for phase in stretches(settings):
        batches_of(objective, corpus, phase.recipe(recipe_of(settings, objective)), settings.duplicates)
    plan = plan_of(settings, objective, config, [1] * len(stretches(settings)))
    held_out = HeldOut(plan, corpus, objective, stage.note) if corpus.held_out.documents else None
    model, spent = fresh_model(settings, config, corpus, objective, stage)
    plan = plan.with_steps(_steps(settings, corpus, model, objective, stage, spent))
    return Ready(
        plan=plan,
        model=model,
        objective=objective.in_run(model, max(plan.batch_sizes), plan.recipe),
        source=plan.source(corpus, objective),
        save=lambda folder: _save(model, folder, plan, corpus, objective, held_out),
        judge=held_out,
        spent=spent,
    )


def _in_its_precision(
    settings: PretrainingSettings, objective: PretrainingObjective, stage: Stage
) -> PretrainingSettings:
    """The settings with the precision that the objective computes in whatever is asked for."""
    if objective.precision in (None, settings.precision):
        return settings
    stage.note(f"{objective.name} computes in {objective.precision} all the same")
    return replace(settings, precision=objective.precision)


def _check_init(settings: PretrainingSettings, family: Family[Any]) -> None:
    if settings.init != "informed" or (settings.start is None and family.informed is not None):
        return
    what = f"a model of the type {family.model_type} starts from random weights"
    what = what if settings.start is None else f"the weights are those of {settings.start}"
    raise HeedfulError(f"{what}: `init` informed has no effect", remedy="leave it out")


def _init(settings: PretrainingSettings, family: Family[Any]) -> Literal["informed", "random"]:
    """What the model starts from where it is not a folder; not every family has something that can be counted."""
    return said(settings.init) if settings.start is None and family.informed is not None else "random"


def fresh_model(
    settings: PretrainingSettings,
    config: EncoderConfig,
    corpus: Corpus,
    objective: PretrainingObjective,
    stage: Stage,
) -> tuple[nn.Module, float]:
    """The model as training finds it, and the seconds that went into it.

    Random weights, perhaps informed by the text, or those of a folder, grown by the words the corpus has more.
    """
    if settings.start is None:
        family = family_named(config.model_type)
        model = family.pretraining_model(config)
        family.initialise(model, config, settings.seed)
        if settings.init == "random" or family.informed is None:
            return model, 0.0
        width, seconds = model.get_parameter(family.informed.token).shape[1], parse_budget(settings.budget).seconds
        start = counted(corpus, width, settings.seed, stage, seconds)
        inform(model, family.informed, start.counts, start.vectors)
        return model, start.seconds
    folder, recipe = read_folder(settings.start), recipe_of(settings, objective)
    return objective.model_from(folder, config, corpus, recipe, settings.seed, stage.note), 0.0


def _model_config(settings: PretrainingSettings, corpus: Corpus, objective: PretrainingObjective) -> EncoderConfig:
    config: EncoderConfig
    if settings.start is None:
        family = family_named(settings.model)
        pieces = objective.pieces(corpus, recipe_of(settings, objective))
        config = family.config_of_size(settings.size, pieces)
        config = overridden(config, {**shape_for(settings, config), **settings.set})
    else:
        config = _config_of_start(settings, settings.start, corpus, objective)
    if settings.dropout is not None:
        config = config.with_dropout(settings.dropout)
    longest = max(phase.length for phase in stretches(settings))
    remedy = "use shorter `phases`, or `set` max_position_embeddings"
    check_room(f"examples of {longest} tokens are", longest, config.max_length, remedy=remedy)
    return config


def _config_of_start(
    settings: PretrainingSettings, start: Place, corpus: Corpus, objective: PretrainingObjective
) -> EncoderConfig:
    if settings.set:
        raise HeedfulError("`set` does not go with `start`", remedy="the shape is that of the folder")
    folder = read_folder(start)
    refuse_training(folder.int8, folder.path)
    return objective.config_from(folder, corpus, recipe_of(settings, objective))


def _steps(
    settings: PretrainingSettings,
    corpus: Corpus,
    model: nn.Module,
    objective: PretrainingObjective,
    stage: Stage,
    spent: float = 0.0,
) -> Sequence[int]:
    """The steps of each phase; a run that is resumed keeps the ones it was started with."""
    phases, stored = stretches(settings), stage.folder.stored_as(Plan)
    shares = tuple(phase.share for phase in phases)
    if stored is not None and (stored.budget, stored.shares) == (settings.budget, shares):
        return stored.steps

    def measured() -> list[float]:
        stage.note(f"measuring a few steps to see how many fit into {settings.budget}")
        return [_seconds(settings, corpus, model, objective, phase) / (1 - RESERVE) for phase in phases]

    tokens = [phase.length * phase.batch_size for phase in phases]
    size = objective.size(corpus, recipe_of(settings, objective))
    steps = steps_of(parse_budget(settings.budget).without(spent), shares, tokens, measured, size)
    listed = zip(steps, phases, strict=True)
    stage.note(", then ".join(f"{s:,} steps of {told_phase(p)}" for s, p in listed))
    return steps


def _seconds(
    settings: PretrainingSettings, corpus: Corpus, model: nn.Module, objective: PretrainingObjective, phase: Stretch
) -> float:
    recipe = recipe_of(settings, objective)
    batches = batches_of(objective, corpus, phase.recipe(recipe), settings.duplicates)
    source = PretrainingSource([Phase(batches, TRIAL_STEPS, phase.batch_size)])
    computed = objective.in_run(model, phase.batch_size, recipe)
    return seconds_per_step(model, computed, source, training_of(settings, TRIAL_STEPS))


def _save(
    model: nn.Module,
    folder: Path,
    plan: Plan,
    corpus: Corpus,
    objective: PretrainingObjective,
    held_out: HeldOut | None,
) -> None:
    objective.save(model, folder, corpus, plan.recipe)
    write_card(folder, plan, corpus, objective, held_out.judged(model).scores if held_out else {})
