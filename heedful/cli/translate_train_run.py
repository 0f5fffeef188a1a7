"""The composition of a translation run: pairs, tokenizers, model, trainer, evaluation, and what is left at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from heedful.checkpoints.encoder_folder import load_encoder
from heedful.checkpoints.translation_folder import TranslationModel, longest_text, save_translation
from heedful.cli.score_file import write_scores
from heedful.cli.training_display import TrainingDisplay
from heedful.cli.training_run import (
    first_process,
    processes,
    steps_of_budget,
    stored_plan,
    tell_end,
    warn_if_busy,
)
from heedful.cli.translate_card import write_translation_card
from heedful.cli.translate_dev import Dev
from heedful.cli.translate_material import Material, read_bert
from heedful.cli.translate_peek import peek
from heedful.cli.translate_plan import Plan, asked_shape, plan_of, with_paper_rate
from heedful.cli.translate_shape import shape_of
from heedful.data.bitext_source import BitextSource
from heedful.errors import HeedfulError
from heedful.models.seq2seq import Seq2Seq, Seq2SeqConfig, initialise_seq2seq
from heedful.models.transformer import Transformer, TransformerConfig, initialise_transformer
from heedful.tasks.translate import TranslationObjective
from heedful.tasks.translate_scores import Scorer
from heedful.training.checkpoint import Checkpoints, verify
from heedful.training.distributed import restarted
from heedful.training.events import Evaluated, Event, Note, Outcome
from heedful.training.optimiser import RateScale
from heedful.training.process import prepare_process
from heedful.training.run_folder import RunFolder
from heedful.training.trainer import Hooks, Trainer

# Evaluations in a run, if nothing else is asked for and epochs are short.
EVALUATIONS = 20


def train(options: Mapping[str, Any]) -> int:
    """Train as the options of the command line say; gives the exit code."""
    prepare_process()
    plan, folder = _checked_plan(options), RunFolder(options["output"])
    if options["peek"]:
        peek(Material.of(plan, click.echo), int(options["peek"]))
        return 0
    folder.check_resumable(options["resume"] or restarted())
    with TrainingDisplay(quiet=not first_process()) as display:
        warn_if_busy(display)
        material = Material.of(plan, lambda text: display.show(Note(text)))
        plan = plan.with_shape(_shape(options, material))
        model = fresh_model(plan, material)
        plan, source = _with_steps(plan, material, model, stored_plan(Plan, folder), display)
        plan = with_paper_rate(plan, options)
        dev = Dev(material, plan, longest_text(plan.shape)) if material.dev else None
        hooks = Hooks(
            evaluate=dev.evaluate if dev else None,
            examples=dev.examples if dev else None,
            on_event=_watcher(display, dev),
            save_model=lambda path: _save(model, path, plan, material, dev, folder.checkpoints, display),
            rate_scale=_rate_scale(plan),
        )
        trainer = Trainer(model, _objective(plan), source, plan.training, folder.path, hooks, plan)
        outcome = trainer.run(options["resume"])
    if first_process():
        _tell(display, trainer, outcome, dev)
    return outcome.exit_code


def fresh_model(plan: Plan, material: Material) -> TranslationModel:
    """The model as training finds it: random weights, or those of a BERT in its encoder."""
    if plan.seq2seq is not None:
        recurrent = Seq2Seq(plan.seq2seq)
        initialise_seq2seq(recurrent, plan.training.seed)
        return recurrent
    assert plan.transformer is not None
    encoder = None if material.bert is None else load_encoder(material.bert)
    model = Transformer(plan.transformer, encoder)
    initialise_transformer(model, plan.training.seed)
    return model


def _checked_plan(options: Mapping[str, Any]) -> Plan:
    """The plan; a shape or a score that cannot be is found out before the data is read and a vocabulary learned."""
    bert = read_bert(options["encoder"])
    plan = plan_of(options)
    if plan.dev:
        Scorer([""], plan.bleu_tokenizer)
    plan.with_shape(shape_of(asked_shape(options), 1, 1, bert is None, None if bert is None else bert.model_config))
    return plan


def _shape(options: Mapping[str, Any], material: Material) -> TransformerConfig | Seq2SeqConfig:
    sides, bert = material.sides, material.bert
    sizes = (sides.source.vocab_size, sides.target.vocab_size, sides.joint)
    return shape_of(asked_shape(options), *sizes, None if bert is None else bert.model_config)


def _objective(plan: Plan) -> TranslationObjective:
    return TranslationObjective(plan.label_smoothing, plan.forcing, plan.training.steps)


def _with_steps(
    plan: Plan, material: Material, model: TranslationModel, stored: Plan | None, display: TrainingDisplay
) -> tuple[Plan, BitextSource]:
    """The plan with its steps counted, by epochs or by a budget, and the batches for them."""
    source = BitextSource(material.train, plan.batch_size, plan.training.seed)
    per_epoch = source.steps_in(1)
    if plan.budget is None:
        steps = source.steps_in(plan.epochs)
    elif stored is not None and stored.budget == plan.budget:
        steps = stored.training.steps  # a time is not measured again, or a resumed run would be another
    else:
        steps = steps_of_budget(plan.budget, model, _objective(plan), source, plan.training)
    source.check(processes(), steps)
    display.show(Note(f"{len(material.train):,} pairs: {steps:,} steps, {per_epoch:,} an epoch"))
    now_and_then = min(max(per_epoch, steps // EVALUATIONS), steps)
    evaluations = plan.training.eval_every or now_and_then
    return plan.with_training(
        steps=steps,
        eval_every=evaluations,
        checkpoint_every=plan.training.checkpoint_every or evaluations,
    ), source


def _watcher(display: TrainingDisplay, dev: Dev | None) -> Callable[[Event], None]:
    """Show every event, and notice which evaluation is that of the weights the run ends with."""

    def watch(event: Event) -> None:
        if isinstance(event, Evaluated) and dev is not None and event.best:
            dev.kept = dev.last
        display.show(event)

    return watch


def _rate_scale(plan: Plan) -> RateScale | None:
    """A BERT knows a lot already and learns more slowly than what is new around it."""
    if plan.encoder is None:
        return None
    share = plan.encoder_rate / plan.training.learning_rate
    return lambda name: share if name.startswith("encoder.") else 1.0


def _save(
    model: TranslationModel,
    path: Path,
    plan: Plan,
    material: Material,
    dev: Dev | None,
    checkpoints: Checkpoints,
    display: TrainingDisplay,
) -> None:
    """Write the finished model: the best, or the average of the last ones."""
    folders = _sound(checkpoints, plan.average)
    if dev is not None and len(folders) > 1:
        display.show(Note(dev.take_average_if_better(model, folders, plan.training)))
    save_translation(model, path, material.sides, plan.names, overwrite=True)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    scores = dev.judged(model).scores if dev else {}
    signatures = dev.scorer.signatures if dev else {}
    write_translation_card(path, plan, parameters, len(material.train), scores, signatures)


def _sound(checkpoints: Checkpoints, last: int) -> list[Path]:
    """The weights of the last checkpoints, as far as they are what was written."""
    found = []
    for path in map(checkpoints.path, checkpoints.steps()[-last:] if last else []):
        try:
            verify(path)
        except HeedfulError:
            continue
        found.append(path / "weights")
    return found


def _tell(display: TrainingDisplay, trainer: Trainer, outcome: Outcome, dev: Dev | None) -> None:
    """Leave the scores in a file, write the report, and say how it ended."""
    if dev is not None and dev.kept is not None:
        write_scores(trainer.folder.path / "scores.json", dev.kept.scores)
        for name, signature in dev.scorer.signatures.items():
            display.show(Note(f"{name} {dev.kept.scores[name]:.2f}  {signature}"))
    tell_end(display, trainer, outcome)
