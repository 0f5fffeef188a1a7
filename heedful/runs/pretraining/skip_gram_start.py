"""The skip-gram minute before an informed start: word2vec over the corpus's own pieces, a run inside the run.

It has a folder of its own, `start/`, with journal and checkpoints, so that a run can be stopped and gone on with in the
middle of it, and leaves its vectors there as a model. One process computes it, whatever the number of processes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from heedful.checkpoints.encoder_folder import load_encoder
from heedful.checkpoints.folder import read_folder
from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.phases import Phase, PretrainingSource
from heedful.data.corpus.running_words import Word2VecRecipe, piece_counts
from heedful.json_files import read_json
from heedful.models.word2vec import Word2VecConfig, Word2VecForPretraining, initialise
from heedful.runs.run import Stage, StoppedBefore
from heedful.tasks.objectives import WORD2VEC
from heedful.training.distributed import World, joined
from heedful.training.events import Outcome
from heedful.training.run_folder import RunFolder
from heedful.training.trainer import Hooks, Trainer
from heedful.training.training_config import TrainingConfig

EPOCHS, WINDOW = 2, 4
LEAST_TEXT = 20  # tokens a piece; with fewer, vectors would say little
MANY_RARE = 0.1  # of the pieces: so many without vectors are told
MOST_READ = 100_000_000  # tokens in both epochs together; of a larger text, parts from all over it say as much
READ_A_SECOND = 25_000  # of a budget of time: a slow core reads four times as many, and has three quarters left
FOLDER = "start"


@dataclass(frozen=True)
class Counted:
    """What an informed start is made of."""

    counts: Tensor  # (V,) how often each piece occurs; 0 for special ones, and for the rare where there are vectors
    vectors: Tensor | None  # (V, D), None where there is too little text
    seconds: float  # that it took


@dataclass(frozen=True)
class StartPlan:
    """What decides the vectors, for the config.toml of their run."""

    corpus: str
    recipe: Word2VecRecipe
    training: TrainingConfig
    model: Word2VecConfig


def counted(corpus: Corpus, width: int, seed: int, stage: Stage, seconds: float = 0.0) -> Counted:
    """Count the pieces of a corpus and train their vectors, or go on with it; `seconds` is a budget of time."""
    recipe = Word2VecRecipe(max_length=1000, seed=seed, unit="piece", window=WINDOW)
    counts, tokens = torch.from_numpy(piece_counts(corpus)).long(), corpus.train.tokens
    often = torch.where(counts < recipe.min_count, 0, counts)
    if tokens < LEAST_TEXT * len(counts) or not often.any():
        few = f"{tokens:,} tokens for {len(counts):,} pieces"
        stage.note(f"the text is too small for word vectors ({few}): the embeddings start at random")
        return Counted(counts, None, 0.0)
    rare = int((often == 0).sum())
    if rare > MANY_RARE * len(counts):
        few = f"{rare:,} of {len(counts):,} pieces occur less than {recipe.min_count} times"
        stage.note(f"{few}: their embeddings start at random")
    folder = RunFolder(stage.folder.path / FOLDER)
    with joined() as world:
        config = Word2VecConfig(len(counts), width)
        told = world.first(lambda: _trained(corpus, recipe, config, folder, stage, most_read(seconds)))
    if told["signal"] is not None:
        raise StoppedBefore(Outcome(told["step"], told["steps"], None, None, None, 0, 1, signal=told["signal"]))
    vectors = load_encoder(read_folder(folder.model)).token_matrix.detach()
    return Counted(often, vectors, float(read_json(folder.timing)["wall"]))


def most_read(seconds: float) -> float:
    """How many tokens the vectors may cost, in a budget of so many seconds or, 0, in one that is no time."""
    return min(MOST_READ, READ_A_SECOND * seconds) if seconds else MOST_READ


def _trained(
    corpus: Corpus, recipe: Word2VecRecipe, config: Word2VecConfig, folder: RunFolder, stage: Stage, most: float
) -> dict[str, int | None]:
    """Train the vectors, on so many tokens at most, unless they are there; gives how far it came, as JSON has it."""
    stage.folder.keep_settings()
    batches, stored = WORD2VEC.batches(corpus, recipe), folder.stored_as(StartPlan)
    size = WORD2VEC.defaults(corpus)["batch_size"]
    stretches = min(EPOCHS * len(batches.text), most / recipe.max_length)
    # What was begun is ended as it was begun, also where a run is to be longer now.
    steps = stored.training.steps if stored else max(1, round(stretches / size))
    training = TrainingConfig(
        steps=steps,
        learning_rate=0.025,
        warmup=0.0,
        seed=recipe.seed,
        checkpoint_every=max(1, steps // 10),
        keep_last=1,
    )
    plan = StartPlan(str(corpus.folder), recipe, training, config)
    if not folder.model.exists():
        stage.note(f"skip-gram over the corpus's own pieces, for the start: {steps:,} steps")
    model = Word2VecForPretraining(config)
    initialise(model, config, recipe.seed)
    hooks = Hooks(on_event=stage.on_event, save_model=lambda path: _save(model, path, corpus, recipe))
    source, objective = PretrainingSource([Phase(batches, steps, size)]), WORD2VEC.in_run(model, size, recipe)
    trainer = Trainer(model, objective, source, training, folder, hooks, plan)
    outcome = trainer.run(True, stage.signals, World())
    return {"step": outcome.step, "steps": outcome.steps, "signal": outcome.signal}


def _save(model: Word2VecForPretraining, path: Path, corpus: Corpus, recipe: Word2VecRecipe) -> None:
    WORD2VEC.save(model, path, corpus, recipe)
