"""The composition of a translation run: pairs, tokenizers, model, evaluation, and what is left at the end."""

from __future__ import annotations

from pathlib import Path

from heedful.checkpoints.encoder_folder import load_encoder
from heedful.checkpoints.translation_folder import TranslationModel, longest_text, rebuilt, save_translation
from heedful.data.bitext.source import BitextSource
from heedful.errors import HeedfulError
from heedful.models.seq2seq import Seq2Seq, Seq2SeqConfig, initialise_seq2seq
from heedful.models.transformer import Transformer, initialise_transformer
from heedful.runs.budget import parse_budget, steps_of_budget
from heedful.runs.run import Ready, Run, Stage, carry_out, processes
from heedful.runs.sharding import check_sharding
from heedful.runs.translation.card import write_translation_card
from heedful.runs.translation.dev import Dev
from heedful.runs.translation.material import Material, read_bert
from heedful.runs.translation.plan import (
    Plan,
    bleu_tokenizer_of,
    check_shape,
    parse_forcing,
    plan_of,
    training_of,
)
from heedful.runs.translation.settings import TranslationSettings
from heedful.runs.translation.shape import Shape, shape_of
from heedful.tasks.translate import TranslationObjective
from heedful.tasks.translate_scores import Scorer
from heedful.training.budget import TRIAL_STEPS
from heedful.training.checkpoint import Checkpoints, verify
from heedful.training.optimiser import RateScale

# Evaluations in a run, if nothing else is asked for and epochs are short.
EVALUATIONS = 20


def train_translator(settings: TranslationSettings, stage: Stage) -> Run:
    """Train as the settings say."""
    check_sharding(settings, stage.resume)
    check(settings)
    return carry_out(prepare, settings, stage)


def check(settings: TranslationSettings) -> None:
    """Find out about a shape or a score that cannot be before the data is read and a vocabulary learned."""
    bert = read_bert(settings)
    if settings.budget:
        parse_budget(settings.budget)
    tokenizer = bleu_tokenizer_of(settings)
    if settings.dev:
        Scorer([""], tokenizer)
    training_of(settings, TRIAL_STEPS)
    check_shape(settings, shape_of(settings, 1, 1, bert is None, None if bert is None else bert.model_config))


def prepare(settings: TranslationSettings, stage: Stage) -> Ready:
    """Read the pairs, build the model and count the steps."""
    material = Material.of(settings, stage.note)
    shape = _shape(settings, material)
    model = fresh_model(shape, material, settings.seed)
    source = BitextSource(material.train, settings.batch_size, settings.seed)
    plan = _plan(settings, shape, model, source, stage)
    dev = Dev(material, plan, longest_text(shape)) if material.dev else None
    return Ready(
        plan=plan,
        model=model,
        objective=_objective(settings, plan.training.steps),
        source=source,
        save=lambda path: _save(model, path, plan, material, dev, stage),
        judge=dev,
        rate_scale=_rate_scale(plan),
    )


def fresh_model(shape: Shape, material: Material, seed: int) -> TranslationModel:
    """The model as training finds it: random weights, those of a BERT in its encoder, or those of a translator."""
    if material.start is not None:
        return rebuilt(material.start, shape)
    if isinstance(shape, Seq2SeqConfig):
        recurrent = Seq2Seq(shape)
        initialise_seq2seq(recurrent, seed)
        return recurrent
    model = Transformer(shape, None if material.bert is None else load_encoder(material.bert))
    initialise_transformer(model, seed)
    return model


def _shape(settings: TranslationSettings, material: Material) -> Shape:
    sides, bert = material.sides, material.bert
    sizes = (sides.source.vocab_size, sides.target.vocab_size, sides.joint)
    shape = shape_of(settings, *sizes, None if bert is None else bert.model_config)
    check_shape(settings, shape)
    return shape


def _objective(settings: TranslationSettings, steps: int) -> TranslationObjective:
    return TranslationObjective(settings.label_smoothing, parse_forcing(settings.forcing), steps)


def _plan(
    settings: TranslationSettings, shape: Shape, model: TranslationModel, source: BitextSource, stage: Stage
) -> Plan:
    """The plan with its steps counted, by epochs or by a budget."""
    per_epoch, stored = source.steps_in(1), stage.folder.stored_as(Plan)
    if settings.budget is None:
        steps = source.steps_in(settings.epochs)
    elif stored is not None and stored.budget == settings.budget:
        steps = stored.training.steps  # a time is not measured again, or a resumed run would be another
    else:
        objective, trial = _objective(settings, TRIAL_STEPS), training_of(settings, TRIAL_STEPS)
        steps = steps_of_budget(settings.budget, model, objective, source, trial)
    source.check(processes(), steps)
    stage.note(f"{len(source.pairs):,} pairs: {steps:,} steps, {per_epoch:,} an epoch")
    evaluations = settings.eval_every or min(max(per_epoch, steps // EVALUATIONS), steps)
    return plan_of(settings, shape, steps, evaluations, settings.checkpoint_every or evaluations)


def _rate_scale(plan: Plan) -> RateScale | None:
    """A BERT knows a lot already and learns more slowly than what is new around it."""
    if plan.encoder is None:
        return None
    share = plan.encoder_rate / plan.training.learning_rate
    return lambda name: share if name.startswith("encoder.") else 1.0


def _save(model: TranslationModel, path: Path, plan: Plan, material: Material, dev: Dev | None, stage: Stage) -> None:
    """Write the finished model: the best, or the average of the last ones."""
    folders = _sound(stage.folder.checkpoints, plan.average)
    if dev is not None and len(folders) > 1:
        stage.note(dev.take_average_if_better(model, folders, plan.training))
    save_translation(model, path, material.sides, plan.names, overwrite=True)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    scores = dev.judged(model).scores if dev else {}
    signatures = dev.scorer.signatures if dev else {}
    write_translation_card(path, plan, parameters, len(material.train), scores, signatures)
    for name, signature in signatures.items():
        stage.note(f"{name} {scores[name]:.2f}  {signature}")


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
