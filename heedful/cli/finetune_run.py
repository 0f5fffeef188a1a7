"""The composition of a fine-tuning run: data, task, model, trainer, evaluation, and what is left at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from heedful.checkpoints.folder import ModelFolder, read_folder
from heedful.checkpoints.task_folder import load_for_task, save_for_task
from heedful.cli.finetune_plan import TASK_FIELDS, Plan, parse_layers
from heedful.cli.peek import peek
from heedful.cli.pretrain_plan import parse_budget
from heedful.cli.pretrain_run import first_process
from heedful.cli.progress import clock
from heedful.cli.task_card import write_task_card
from heedful.cli.training_display import TrainingDisplay
from heedful.config import read_toml, to_mapping
from heedful.data.labelled import Columns, Dataset
from heedful.errors import HeedfulError
from heedful.inference.workers import worker_pool
from heedful.json_files import write_json
from heedful.models.bert import initialise
from heedful.models.heads import freeze, layer_depth
from heedful.tasks.finetuning import TaskObjective, features_of
from heedful.tasks.items import ItemSource, Known, outputs_of
from heedful.tasks.registry import task_named
from heedful.tasks.task import Item, Prediction, Task
from heedful.text.tokenizer import Tokenizer
from heedful.training.budget import steps_for
from heedful.training.distributed import restarted
from heedful.training.events import Evaluated, Event, Note, Outcome
from heedful.training.optimiser import RateScale, layerwise
from heedful.training.run_folder import RunFolder
from heedful.training.trainer import Hooks, Trainer
from heedful.training.training_config import TrainingConfig
from heedful.views.report import write_report

RATE = 5e-5
HEAD_RATE = 1e-3  # of layers that start from nothing and are more than one matrix


@dataclass(frozen=True)
class Finished:
    """A run that has ended: how, and the last scores on dev with the best weights."""

    outcome: Outcome
    scores: Mapping[str, float]
    folder: Path


def finetune(options: Mapping[str, Any]) -> int:
    """Train as the options of the command line say; gives the exit code."""
    torch.set_flush_denormal(True)  # before torch starts its threads, which would not hear of it later
    plan, output = plan_of(options), Path(options["output"])
    if options["peek"]:
        peek(Material.of(plan), int(options["peek"]))
        return 0
    if options["seeds"] > 1:
        from heedful.cli.seeds import run_seeds

        return run_seeds(plan, output, int(options["seeds"]), bool(options["resume"]))
    return run(plan, output, bool(options["resume"])).outcome.exit_code


def plan_of(options: Mapping[str, Any]) -> Plan:
    """The plan of the options; how many steps it takes is worked out when the data is read."""
    keep = options["keep"] if options["dev"] else "last"
    features = parse_layers(options["features"])
    layered = options["head"] not in (None, "linear")
    training = TrainingConfig(
        steps=1,
        learning_rate=options["learning_rate"] or (HEAD_RATE if features else RATE),
        warmup=options["warmup"],
        weight_decay=options["weight_decay"],
        portions=options["portions"],
        seed=options["seed"],
        eps=1e-8,
        eval_every=options["eval_every"],
        checkpoint_every=options["checkpoint_every"],
        best=(options["metric"] or task_named(options["task"]).best) if options["dev"] else None,
        higher_is_better=True,
        patience=options["patience"] if options["dev"] else 0,
        restore_best=keep == "best",
    )
    same = ("task", "model", "train", "dev", "limit", "freeze", "layer_decay", "dropout", "random_weights")
    more = ("batch_size", "by_tokens", "epochs", "budget", *(name for name in TASK_FIELDS if name != "features"))
    return Plan(
        **{name: options[name] for name in (*same, *more)},
        columns=Columns(options["text"], options["pair"], options["label"]),
        features=features,
        head_rate=options["head_rate"] or (HEAD_RATE if layered and not features else None),
        keep=keep,
        training=training,
    )


@dataclass(frozen=True)
class Material:
    """What a run works with: the folder it starts from, its task, and the data as items."""

    folder: ModelFolder
    tokenizer: Tokenizer
    task: Task[Any]
    train: Dataset[Any]
    dev: Dataset[Any] | None
    train_items: list[Item]

    @classmethod
    def of(cls, plan: Plan) -> Material:
        """Read and check all of it."""
        folder = read_folder(plan.model)
        if folder.tokenizer is None:
            raise HeedfulError("the folder has no tokenizer", where=folder.path, remedy="put its tokenizer.json there")
        kind = task_named(plan.task)
        train = kind.read(Path(plan.train), plan.columns)
        if plan.limit:
            train = replace(train, examples=train.examples[: plan.limit])
        task = kind.fit(train.examples, **plan.task_fields({field.name for field in fields(kind)}))
        _check_room(task, folder)
        dev = kind.read(Path(plan.dev), plan.columns) if plan.dev else None
        if dev is not None:
            task.check(dev.examples)
        items = task.encode(train.examples, folder.tokenizer)
        return cls(folder, folder.tokenizer, task, train, dev, items)

    def remarks(self) -> list[str]:
        """What was odd about the files, and how many examples had to be cut."""
        sets = [("train", self.train), *([("dev", self.dev)] if self.dev else [])]
        found = [f"{name}: {remark}" for name, data in sets for remark in data.remarks]
        limit = self.task.max_length
        full = sum(any(len(window.ids) >= limit for window in item.windows) for item in self.train_items)
        if full and not self.task.stride and self.task.reads_once:
            found.append(
                f"{full:,} of {len(self.train_items):,} examples fill all {limit} tokens; the rest was cut off"
            )
        return found


@dataclass(frozen=True)
class Judged:
    """What the model said of the dev examples, and how good that was."""

    predictions: Sequence[Prediction]
    scores: Mapping[str, float]


class Dev:
    """Evaluation on the dev data, by the same steps as `heedful evaluate`; keeps what the kept weights said."""

    def __init__(self, material: Material, known: Known | None) -> None:
        assert material.dev is not None
        self.task, self.examples = material.task, material.dev.examples
        self.items = self.task.encode(self.examples, material.tokenizer)
        self.known = known
        self.last: Judged | None = None
        self.kept: Judged | None = None

    def evaluate(self, model: nn.Module) -> Mapping[str, float]:
        """The scores."""
        with worker_pool() as pool:
            outputs = outputs_of(model, self.items, pool.map, self.known)
        predictions = self.task.decode(model, self.examples, self.items, outputs)
        self.last = Judged(predictions, self.task.score(self.examples, predictions))
        return self.last.scores

    def tune(self, model: nn.Module) -> Judged:
        """Settle what only dev data can tell of the task, and give what the weights that are kept say then.

        They are asked again only if a resumed run has not heard it, or if the task has changed.
        """
        kept = self.kept or self._asked(model)
        tuned = self.task.tuned(self.examples, kept.predictions)
        if tuned != self.task:
            self.task = tuned
            kept = self._asked(model)
        self.kept = kept
        return kept

    def _asked(self, model: nn.Module) -> Judged:
        self.evaluate(model.eval())
        assert self.last is not None
        return self.last


def run(plan: Plan, output: Path, resume: bool) -> Finished:
    """One run from reading the data to the model folder."""
    folder = RunFolder(output)
    folder.check_resumable(resume or restarted())
    with TrainingDisplay(quiet=not first_process()) as display:
        material = Material.of(plan)
        for text in material.remarks():
            display.show(Note(text))
        model = model_of(plan, material, lambda text: display.show(Note(text)))
        known, known_dev = _known_states(plan, material, model, display)
        plan, source = _with_steps(plan, material, model, known, folder, display)
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
            write_json(output / "scores.json", dict(dev.kept.scores))
        lines = [f"{outcome}, {clock(trainer.clock.wall)} in all", f"report: {write_report(output)}"]
        if outcome.finished:
            lines.append(f"model:  {folder.model}")
        display.console.print("\n".join(lines), markup=False, highlight=False)
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
    model = load_for_task(folder, material.task.model, plan.training.seed, note=note)
    if plan.random_weights:
        initialise(model, config, plan.training.seed)
    if plan.freeze:
        freeze(model, plan.freeze)
    return model


def _check_room(task: Task[Any], folder: ModelFolder) -> None:
    positions = folder.model_config.max_position_embeddings
    if task.max_length > positions:
        raise HeedfulError(
            f"windows of {task.max_length} tokens are longer than the model's {positions} positions",
            where=folder.path,
            remedy=f"use --max-length {positions} or less",
        )


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
        dev = compute(material.task.encode(material.dev.examples, material.tokenizer)) if material.dev else None
    return known, dev


def _with_steps(
    plan: Plan,
    material: Material,
    model: nn.Module,
    known: Known | None,
    folder: RunFolder,
    display: TrainingDisplay,
) -> tuple[Plan, ItemSource]:
    """The plan with its steps counted, by epochs or by a budget, and the batches for them."""

    def source(epochs: float) -> ItemSource:
        seed, name = plan.training.seed, material.task.name
        return ItemSource(material.train_items, name, plan.batch_size, epochs, seed, plan.by_tokens, known)

    epochs = plan.epochs
    stored = read_toml(Plan, folder.config) if folder.config.exists() else None
    if stored is not None and stored.budget == plan.budget:
        epochs = stored.epochs
    elif plan.budget is not None:
        budget, one = parse_budget(plan.budget), source(1)
        if budget.tokens:
            raise HeedfulError("a budget in tokens is for pretraining", remedy="write 30m or 2000steps, or --epochs")
        trial = replace(plan.training, steps=one.steps)
        steps = budget.steps or steps_for(budget.seconds, model, TaskObjective(material.task), one, trial)
        epochs = steps / one.steps
    batches = source(epochs)
    per_epoch = batches.first_steps[1] if len(batches.first_steps) > 1 else batches.steps
    every = plan.training.eval_every or per_epoch
    texts = f"{len(material.train.examples):,} examples as {len(material.train_items):,} windows"
    display.show(Note(f"{texts}: {batches.steps:,} steps, {per_epoch:,} an epoch"))
    return replace(plan, epochs=epochs).with_training(steps=batches.steps, eval_every=every), batches


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
    task, judged = material.task, None
    if dev is not None:
        judged = dev.tune(model)
        task = dev.task
    save_for_task(
        model,
        path,
        material.tokenizer,
        task={"task": task.name, **to_mapping(task)},
        architecture=None if plan.features else task.architecture,  # no such class looks at several layers
        labels=getattr(task, "labels", ()),
        foreign=material.folder.config,
        overwrite=True,
    )
    write_task_card(path, plan, material.train, judged.scores if judged else {})
