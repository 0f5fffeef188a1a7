"""The composition of a fine-tuning run: data, task, model, evaluation, and what is left at the end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from torch import nn

from heedful.checkpoints.task_folder import load_for_task, save_for_task, start_for_task
from heedful.config import to_mapping
from heedful.data.labelled.dataset import TextRow
from heedful.errors import HeedfulError
from heedful.inference.workers import worker_pool
from heedful.models.encoder import encoder_of
from heedful.models.heads import freeze, layer_depth
from heedful.runs.budget import steps_of_budget
from heedful.runs.finetuning.card import write_task_card
from heedful.runs.finetuning.dev import Dev, Judged
from heedful.runs.finetuning.material import Material, described
from heedful.runs.finetuning.plan import Plan, batch_size_of, plan_of, training_of
from heedful.runs.finetuning.settings import FinetuningSettings
from heedful.runs.run import Ready, Run, Stage, carry_out, processes
from heedful.tasks.finetuning import TaskObjective, frozen_features
from heedful.tasks.items import ItemSource, Known
from heedful.training.budget import TRIAL_STEPS
from heedful.training.optimiser import RateScale, layerwise

SEEDS = "seeds.json"


def finetune(
    settings: FinetuningSettings, stage: Stage, material: Material | None = None, steps: int | None = None
) -> Run:
    """Train as the settings say; what is known already, data or steps of a budget, is taken as it is."""
    if (stage.folder.path / SEEDS).exists():
        where, remedy = stage.folder.path, "name another folder"
        raise HeedfulError("this folder holds runs of several seeds", where=where, remedy=remedy)
    return carry_out(partial(prepare, material=material, steps=steps), settings, stage)


def prepare(
    settings: FinetuningSettings, stage: Stage, material: Material | None = None, steps: int | None = None
) -> Ready:
    """Read the data, build the model and count the steps."""
    training_of(settings, TRIAL_STEPS)  # what is wrong with it is told before the data is read
    material = material or Material.of(settings)
    asked, settings = settings, material.decided(settings)
    if settings.dropout != asked.dropout:
        stage.note(f"dropout {settings.dropout}: the model has none, and lines alone are learned from by it")
    for text in material.remarks():
        stage.note(text)
    model = model_of(settings, material, stage.note)
    known, known_dev = _known_states(settings, material, model, stage)
    source = _source(settings, material, known)
    plan = _plan(settings, material, model, source, steps, stage)
    dev = Dev(material, known_dev) if material.dev else None
    return Ready(
        plan=plan,
        model=model,
        objective=TaskObjective(material.task),
        source=source,
        save=lambda path: _save(model, path, plan, material, dev),
        judge=dev,
        rate_scale=_rate_scale(plan, model),
    )


def model_of(settings: FinetuningSettings, material: Material, note: Callable[[str], object]) -> nn.Module:
    """The task's model over the folder's encoder, as training finds it."""
    folder, build = material.folder.with_dropout(settings.dropout), material.task.model
    if settings.random_weights:
        model = start_for_task(folder, build, settings.seed)
    else:
        model = load_for_task(folder, build, settings.seed, task=described(material.task), note=note)
    if settings.freeze:
        freeze(model, settings.freeze)
    return model


def _known_states(
    settings: FinetuningSettings, material: Material, model: nn.Module, stage: Stage
) -> tuple[Known | None, Known | None]:
    """For a frozen encoder whose states are the features: these states, for train and dev."""
    if not settings.features:
        return None, None
    stage.note(f"computing the states of layers {', '.join(map(str, settings.features))} once")
    model.eval()
    with worker_pool() as pool:
        how = (model.encoder, settings.features, settings.combine or "concat", settings.pooling or "cls")
        compute = partial(frozen_features, *how, mapper=pool.map)  # type: ignore[arg-type]
        known = compute(material.train_items)
        dev = compute(material.dev_items) if material.dev else None
    return known, dev


def _source(settings: FinetuningSettings, material: Material, known: Known | None) -> ItemSource:
    sizes = (batch_size_of(settings), settings.seed, settings.by_tokens)
    return ItemSource(material.train_items, material.task.name, *sizes, known, material.task.whole_batch)


def _plan(
    settings: FinetuningSettings,
    material: Material,
    model: nn.Module,
    source: ItemSource,
    steps: int | None,
    stage: Stage,
) -> Plan:
    """The plan with its steps counted, by epochs or by a budget."""
    per_epoch, stored = source.steps_in(1), stage.folder.stored_as(Plan)
    if settings.budget is None:
        steps = source.steps_in(settings.epochs)
    elif stored is not None and stored.budget == settings.budget:
        steps = stored.training.steps  # a time is not measured again, or a resumed run would be another
    elif steps is None:
        trial = training_of(settings, TRIAL_STEPS)
        steps = steps_of_budget(settings.budget, model, TaskObjective(material.task), source, trial)
    source.check(processes(), steps)
    texts = f"{len(material.train.examples):,} examples as {len(material.train_items):,} windows"
    stage.note(f"{texts}: {steps:,} steps, {per_epoch:,} an epoch")
    return plan_of(settings, steps, settings.eval_every or min(per_epoch, steps))


def _rate_scale(plan: Plan, model: nn.Module) -> RateScale | None:
    """A parameter's share of the learning rate: less in lower layers, and the head its own."""
    if plan.layer_decay == 1 and plan.head_rate is None:
        return None
    encoder = encoder_of(model)
    by_layer = layerwise(lambda name: layer_depth(encoder, name), encoder.layer_count + 1, plan.layer_decay)
    head = 1.0 if plan.head_rate is None else plan.head_rate / plan.training.learning_rate
    return lambda name: by_layer(name) if name.startswith("encoder.") else head


def _save(model: nn.Module, path: Path, plan: Plan, material: Material, dev: Dev | None) -> None:
    """Write the finished model."""
    judged = dev.judged(model) if dev else Judged(material.task, {})
    task = judged.task
    columns = {name: column for name, column in to_mapping(plan.columns).items() if column is not None}
    first = material.train.examples[0]
    beside = {"columns": columns} if columns else {}
    merged = {"merge_labels": plan.merge_labels} if plan.merge_labels else {}
    pairs = {"pairs": first.pair is not None} if isinstance(first, TextRow) else {}
    save_for_task(
        model,
        path,
        material.tokenizer,
        task={**described(task), **beside, **pairs, **merged},
        architecture=task.architecture,
        labels=getattr(task, "labels", ()),
        foreign=material.folder.config,
        sentence=task.sentence,
        overwrite=True,
    )
    write_task_card(path, plan, material.train, judged)
