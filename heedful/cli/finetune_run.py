"""The composition of a fine-tuning run: data, task, model, trainer, evaluation, and what is left at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from heedful.checkpoints.task_folder import load_for_task, save_for_task, start_for_task
from heedful.cli.finetune_dev import Dev, Judged
from heedful.cli.finetune_material import Material, described
from heedful.cli.finetune_plan import Plan, plan_of
from heedful.cli.peek import peek
from heedful.cli.score_file import write_scores
from heedful.cli.task_card import write_task_card
from heedful.cli.training_display import TrainingDisplay
from heedful.cli.training_run import first_process, processes, steps_of_budget, stored_plan, tell_end
from heedful.config import to_mapping
from heedful.data.labelled import TextRow
from heedful.errors import HeedfulError
from heedful.inference.workers import worker_pool
from heedful.models.heads import freeze, layer_depth
from heedful.tasks.blind_guess import blind_guess_remark
from heedful.tasks.finetuning import TaskObjective, features_of
from heedful.tasks.items import ItemSource, Known
from heedful.training.distributed import restarted
from heedful.training.events import Evaluated, Event, Note, Outcome
from heedful.training.optimiser import RateScale, layerwise
from heedful.training.process import prepare_process
from heedful.training.run_folder import RunFolder
from heedful.training.trainer import Hooks, Trainer


@dataclass(frozen=True)
class Finished:
    """A run that has ended: how, and the last scores on dev with the best weights."""

    outcome: Outcome
    scores: Mapping[str, float]
    folder: Path


def finetune(options: Mapping[str, Any]) -> int:
    """Train as the options of the command line say; gives the exit code."""
    prepare_process()
    plan, output = plan_of(options), Path(options["output"])
    if options["peek"]:
        peek(Material.of(plan), int(options["peek"]))
        return 0
    from heedful.cli.seeds import SEEDS, run_seeds

    if options["seeds"] > 1:
        return run_seeds(plan, output, int(options["seeds"]), bool(options["resume"]))
    if (output / SEEDS).exists():
        raise HeedfulError("this folder holds runs of several seeds", where=output, remedy="name another folder")
    return run(plan, output, bool(options["resume"])).outcome.exit_code


def run(plan: Plan, output: Path, resume: bool, material: Material | None = None, steps: int | None = None) -> Finished:
    """One run from reading the data to the model folder; what is known already, data or steps, is taken as it is."""
    folder = RunFolder(output)
    folder.check_resumable(resume or restarted())
    with TrainingDisplay(quiet=not first_process()) as display:
        material = material or Material.of(plan)
        for text in material.remarks():
            display.show(Note(text))
        model = model_of(plan, material, lambda text: display.show(Note(text)))
        known, known_dev = _known_states(plan, material, model, display)
        plan, source = _with_steps(plan, material, model, known, stored_plan(Plan, folder), steps, display)
        dev = Dev(material, known_dev) if material.dev else None
        hooks = Hooks(
            evaluate=dev.evaluate if dev else None,
            on_event=_watcher(display, plan, dev),
            save_model=lambda path: _save(model, path, plan, material, dev),
            rate_scale=_rate_scale(plan, material),
        )
        trainer = Trainer(model, TaskObjective(material.task), source, plan.training, output, hooks, plan)
        outcome = trainer.run(resume)
    if first_process():
        if dev is not None and dev.kept is not None:
            write_scores(output / "scores.json", dev.kept.scores)
        tell_end(display, trainer, outcome)
        if dev is not None and dev.kept is not None and plan.training.best is not None:
            remark = blind_guess_remark(dev.kept.task, dev.examples, dev.kept.scores, plan.training.best)
            if remark:
                display.show(Note(f"remark: {remark}"))
    return Finished(outcome, dev.kept.scores if dev and dev.kept else {}, output)


def _watcher(display: TrainingDisplay, plan: Plan, dev: Dev | None) -> Callable[[Event], None]:
    """Show every event, and notice which evaluation is that of the weights the run ends with."""

    def watch(event: Event) -> None:
        if isinstance(event, Evaluated) and dev is not None and (event.best or plan.keep == "last"):
            dev.kept = dev.last
        display.show(event)

    return watch


def model_of(plan: Plan, material: Material, note: Callable[[str], object]) -> nn.Module:
    """The task's model over the folder's encoder, as training finds it."""
    config = material.folder.model_config
    if plan.dropout is not None:
        config = replace(config, hidden_dropout_prob=plan.dropout, attention_probs_dropout_prob=plan.dropout)
    folder = replace(material.folder, model_config=config)
    build, seed = material.task.model, plan.training.seed
    if plan.random_weights:
        model = start_for_task(folder, build, seed)
    else:
        model = load_for_task(folder, build, seed, task=described(material.task), note=note)
    if plan.freeze:
        freeze(model, plan.freeze)
    return model


def _known_states(
    plan: Plan, material: Material, model: nn.Module, display: TrainingDisplay
) -> tuple[Known | None, Known | None]:
    """For a frozen encoder whose states are the features: these states, for train and dev."""
    if not plan.features:
        return None, None
    display.show(Note(f"computing the states of layers {', '.join(map(str, plan.features))} once"))
    model.eval()
    with worker_pool() as pool:
        how = (model.encoder, plan.features, plan.combine or "concat")
        compute = partial(features_of, *how, mapper=pool.map)  # type: ignore[arg-type]
        known = compute(material.train_items)
        dev = compute(material.dev_items) if material.dev else None
    return known, dev


def _with_steps(
    plan: Plan,
    material: Material,
    model: nn.Module,
    known: Known | None,
    stored: Plan | None,
    steps: int | None,
    display: TrainingDisplay,
) -> tuple[Plan, ItemSource]:
    """The plan with its steps counted, by epochs or by a budget, and the batches for them."""
    name, seed = material.task.name, plan.training.seed
    source = ItemSource(material.train_items, name, plan.batch_size, seed, plan.by_tokens, known)
    per_epoch = source.steps_in(1)
    if plan.budget is None:
        steps = source.steps_in(plan.epochs)
    elif stored is not None and stored.budget == plan.budget:
        steps = stored.training.steps  # a time is not measured again, or a resumed run would be another
    elif steps is None:
        steps = steps_of_budget(plan.budget, model, TaskObjective(material.task), source, plan.training)
    source.check(processes(), steps)
    texts = f"{len(material.train.examples):,} examples as {len(material.train_items):,} windows"
    display.show(Note(f"{texts}: {steps:,} steps, {per_epoch:,} an epoch"))
    every = plan.training.eval_every or min(per_epoch, steps)
    return plan.with_training(steps=steps, eval_every=every), source


def _rate_scale(plan: Plan, material: Material) -> RateScale | None:
    """A parameter's share of the learning rate: less in lower layers, and the head its own."""
    if plan.layer_decay == 1 and plan.head_rate is None:
        return None
    layers = material.folder.model_config.num_hidden_layers
    by_layer = layerwise(lambda name: layer_depth(name, layers), layers + 1, plan.layer_decay)
    head = 1.0 if plan.head_rate is None else plan.head_rate / plan.training.learning_rate
    return lambda name: by_layer(name) if name.startswith("encoder.") else head


def _save(model: nn.Module, path: Path, plan: Plan, material: Material, dev: Dev | None) -> None:
    """Write the finished model."""
    judged = dev.judged(model) if dev else Judged(material.task, {})
    task = judged.task
    columns = {name: column for name, column in to_mapping(plan.columns).items() if column is not None}
    first = material.train.examples[0]
    beside = {"columns": columns} if columns else {}
    pairs = {"pairs": first.pair is not None} if isinstance(first, TextRow) else {}
    save_for_task(
        model,
        path,
        material.tokenizer,
        task={**described(task), **beside, **pairs},
        architecture=None if plan.features else task.architecture,  # no such class looks at several layers
        labels=getattr(task, "labels", ()),
        foreign=material.folder.config,
        overwrite=True,
    )
    write_task_card(path, plan, material.train, judged.scores)
