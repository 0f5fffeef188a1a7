"""The composition of a pretraining run: corpus, model, objective, trainer, evaluation, and what is left at the end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from torch import nn

from heedful.checkpoints.encoder_folder import save_model
from heedful.checkpoints.families import family_named
from heedful.checkpoints.folder import read_folder
from heedful.checkpoints.grown import grown_config, load_grown
from heedful.cli.held_out import HeldOut
from heedful.cli.model_card import write_card
from heedful.cli.pretrain_plan import Plan, batch_size_of, parse_budget, parse_phases, steps_of
from heedful.cli.settings import parse_settings
from heedful.cli.training_display import TrainingDisplay
from heedful.cli.training_run import first_process, stored_plan, tell_end, warn_if_busy
from heedful.config import from_mapping, to_mapping
from heedful.data.corpus import Corpus
from heedful.data.examples import Recipe
from heedful.data.source import Phase, PretrainingSource
from heedful.errors import HeedfulError
from heedful.models.bert import BertConfig, sized
from heedful.models.encoder import EncoderConfig, check_room
from heedful.tasks.pretraining import pretraining_losses
from heedful.text.domain_words import extends
from heedful.training.budget import RESERVE, seconds_per_step
from heedful.training.distributed import restarted
from heedful.training.events import Note, Outcome
from heedful.training.process import prepare_process
from heedful.training.run_folder import RunFolder
from heedful.training.trainer import Hooks, Trainer
from heedful.training.training_config import Precision, TrainingConfig


@dataclass(frozen=True)
class Options:
    """The options of `heedful pretrain`."""

    corpus: str
    output: str
    size: str = "mini"
    fields: tuple[str, ...] = ()
    start: str | None = None
    budget: str = "30m"
    phases: str = "128:100%"
    batch_size: int = 32
    portions: int = 1
    precision: Precision = "float32"
    masking: str = "token"
    mask_rate: float = 0.15
    duplicates: int = 0
    pairs: str = "nsp"
    single_sentences: bool = False
    learning_rate: float = 1e-4
    warmup: float = 0.1
    weight_decay: float = 0.01
    clip: float = 1.0
    dropout: float | None = None
    seed: int = 0
    eval_every: int = 500
    checkpoint_every: int = 500
    resume: bool = False


def pretrain(options: Options) -> Outcome:
    """Train as the options say, showing progress; gives how it ended."""
    prepare_process()
    corpus = Corpus.open(options.corpus)
    run = RunFolder(options.output)
    run.check_resumable(options.resume or restarted())
    with TrainingDisplay(quiet=not first_process()) as display:
        warn_if_busy(display)
        plan = plan_for(options, corpus)
        model = fresh_model(plan, corpus, display)
        stored = stored_plan(Plan, run)
        plan = plan.with_steps(_steps(plan, corpus, model, stored, display))
        held_out = HeldOut(plan, corpus, display) if corpus.held_out.documents else None
        hooks = Hooks(
            evaluate=held_out.evaluate if held_out else None,
            examples=held_out.filled_in if held_out else None,
            on_event=display.show,
            save_model=lambda folder: _save(model, folder, plan, corpus, held_out),
        )
        trainer = Trainer(model, pretraining_losses, plan.source(corpus), plan.training, options.output, hooks, plan)
        outcome = trainer.run(options.resume)
    if first_process():
        tell_end(display, trainer, outcome)
    return outcome


def plan_for(options: Options, corpus: Corpus) -> Plan:
    """The plan of the options, with a single step in each phase as long as the budget is not worked out."""
    parse_budget(options.budget)
    phases = parse_phases(options.phases)
    lengths, shares = zip(*phases, strict=True)
    steps = (1,) * len(phases)
    return Plan(
        corpus=options.corpus,
        budget=options.budget,
        lengths=lengths,
        shares=shares,
        batch_sizes=tuple(batch_size_of(n, lengths[0], options.batch_size) for n in lengths),
        steps=steps,
        recipe=from_mapping(
            Recipe,
            {
                "max_length": lengths[0],
                "pairs": options.pairs,
                "single_sentences": options.single_sentences,
                "masking": options.masking,
                "rate": options.mask_rate,
                "seed": options.seed,
            },
            "options",
        ),
        training=TrainingConfig(
            steps=len(steps),
            learning_rate=options.learning_rate,
            warmup=options.warmup,
            weight_decay=options.weight_decay,
            clip=options.clip,
            portions=options.portions,
            precision=options.precision,
            seed=options.seed,
            eval_every=options.eval_every,
            checkpoint_every=options.checkpoint_every,
        ),
        model=_model_config(options, corpus, max(lengths)),
        start=options.start,
        duplicates=options.duplicates,
    )


def fresh_model(plan: Plan, corpus: Corpus, display: TrainingDisplay) -> nn.Module:
    """The model as training finds it: random weights, or those of a folder, grown by the words the corpus has more."""
    if plan.start is not None:
        folder = read_folder(plan.start)
        shape = replace(plan.model, vocab_size=folder.model_config.vocab_size)  # as planned, dropout and all, ungrown
        model = load_grown(replace(folder, model_config=shape), corpus.tokenizer, plan.training.seed)
        more = corpus.tokenizer.vocab_size - folder.tokenizer.vocab_size if folder.tokenizer else 0
        if more:
            display.show(Note(f"{more:,} words are new: each starts as the mean of the pieces it was spelled with"))
        return model
    family = family_named(plan.model.model_type)
    model = family.pretraining_model(plan.model)
    family.initialise(model, plan.model, plan.training.seed)
    return model


def _model_config(options: Options, corpus: Corpus, longest: int) -> EncoderConfig:
    if options.start is not None:
        folder = read_folder(options.start)
        if options.fields:
            raise HeedfulError("--set does not go with --from", remedy="the shape is that of the folder")
        if folder.tokenizer is not None and not extends(corpus.tokenizer, folder.tokenizer):
            corpus.check_vocabulary(folder.tokenizer)
        config: EncoderConfig = grown_config(folder, corpus.tokenizer)
    else:
        values = to_mapping(sized(options.size, corpus.tokenizer.vocab_size))
        config = from_mapping(
            BertConfig, {**values, **parse_settings(options.fields, BertConfig, "hidden_size=192")}, "--set"
        )
    if options.dropout is not None:
        config = config.with_dropout(options.dropout)
    remedy = "use shorter phases, or --set max_position_embeddings=…"
    check_room(f"examples of {longest} tokens are", longest, config.max_length, remedy=remedy)
    return config


def _steps(
    plan: Plan, corpus: Corpus, model: nn.Module, stored: Plan | None, display: TrainingDisplay
) -> tuple[int, ...]:
    """The steps of each phase; a run that is resumed keeps the ones it was started with."""
    if stored is not None and (stored.budget, stored.shares) == (plan.budget, plan.shares):
        return stored.steps

    def measured() -> list[float]:
        display.show(Note(f"measuring a few steps to see how many fit into {plan.budget}"))
        sources = [
            PretrainingSource([Phase(plan.examples(corpus, n), 1, size)])
            for n, size in zip(plan.lengths, plan.batch_sizes, strict=True)
        ]
        return [seconds_per_step(model, pretraining_losses, one, plan.training) / (1 - RESERVE) for one in sources]

    tokens = [n * size for n, size in zip(plan.lengths, plan.batch_sizes, strict=True)]
    steps = steps_of(parse_budget(plan.budget), plan.shares, tokens, measured)
    phases = zip(steps, plan.batch_sizes, plan.lengths, strict=True)
    listed = ", then ".join(f"{s:,} steps of {size} examples of up to {n} tokens" for s, size, n in phases)
    display.show(Note(listed))
    return tuple(steps)


def _save(model: nn.Module, folder: Path, plan: Plan, corpus: Corpus, held_out: HeldOut | None) -> None:
    save_model(model, folder, corpus.tokenizer, overwrite=True)
    write_card(folder, plan, corpus, held_out.last if held_out else {})
