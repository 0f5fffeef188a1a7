"""word2vec's objective for a run: it moves the vectors itself, and is judged by its loss on held-out text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from heedful.checkpoints.encoder_folder import save_model
from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.running_words import RunningWords, Word2VecRecipe, running_words
from heedful.data.corpus.windows import WindowBatch, WindowBatches
from heedful.models.encoder import encoder_of
from heedful.nn.negative_sampling import Loss, update
from heedful.tasks.pretraining_objective import PretrainingObjective
from heedful.text.tokenizer import Tokenizer
from heedful.text.word_tokenizer import word_tokenizer

STRETCH = 1000  # words of running text that are read together
BLOCKS_AT_ONCE = 16  # of neighbouring words between two moves; with more, frequent words would be moved too far
MEASURED = 8  # the loss is taken of every so many moves
SHOWN = 4
TEXT_SETTINGS = {name: name for name in ("unit", "min_count", "cased", "window", "negatives", "subsample")}


class Word2VecObjective(PretrainingObjective):
    """Tell the words around a word from words drawn by chance."""

    name = "word2vec"
    recipe = Word2VecRecipe
    settings: ClassVar[Mapping[str, str]] = {**TEXT_SETTINGS, "architecture": "architecture", "workers": "workers"}
    unused = frozenset({"accumulate", "weight_decay", "clip", "shard"})
    precision = "float32"
    use = "    heedful nearest FOLDER some words\n    heedful similarity FOLDER --pairs pairs.tsv"

    def check(self, corpus: Corpus) -> None:
        """What it lacks shows when its words are read."""

    def defaults(self, corpus: Corpus) -> dict[str, Any]:
        """The original's recipe; steps of up to 100,000 words, and at least twenty to go once through the text."""
        few = max(1, min(100, corpus.train.tokens // (STRETCH * 20)))
        recipe = {"learning_rate": 0.025, "warmup": 0.0, "eval_every": 0, "checkpoint_every": 100}
        return {"budget": "5epochs", "phases": f"{STRETCH}:100%", "batch_size": few, **recipe}

    def pieces(self, corpus: Corpus, recipe: Word2VecRecipe) -> int:
        return len(running_words(corpus, recipe).vocabulary)

    def size(self, corpus: Corpus, recipe: Word2VecRecipe) -> int:
        return running_words(corpus, recipe).size

    def batches(self, corpus: Corpus, recipe: Word2VecRecipe) -> WindowBatches:
        return WindowBatches(running_words(corpus, recipe), recipe)

    def losses(self, model: nn.Module, micro_batch: WindowBatch) -> dict[str, Tensor]:
        return {self.name: torch.tensor(measured(model, micro_batch).total)}

    def in_run(self, model: nn.Module, lanes: int, recipe: Any) -> MovingVectors:
        return MovingVectors()

    def examination(
        self, corpus: Corpus, recipe: Word2VecRecipe, batch_size: int, most: int, tell: Callable[[str], object]
    ) -> Word2VecExamination:
        return Word2VecExamination(corpus, recipe)

    def described(self, recipe: Word2VecRecipe) -> str:
        return (
            f"word2vec: {recipe.architecture} over {recipe.unit}s that occur {recipe.min_count} times, window "
            f"{recipe.window}, {recipe.negatives} negatives, frequent words thinned out from {recipe.subsample:g} on"
        )

    def save(self, model: nn.Module, folder: Path, corpus: Corpus, recipe: Any) -> None:
        text = running_words(corpus, recipe)
        with torch.no_grad():  # what never occurs has no vector
            encoder_of(model).token_matrix[torch.from_numpy(text.counts == 0)] = 0.0
        save_model(model, folder, tokenizer_of(text, corpus, recipe), overwrite=True)


class MovingVectors:
    """The objective as the trainer sees it."""

    def __call__(self, model: nn.Module, micro_batch: WindowBatch) -> dict[str, Tensor]:
        """The loss without moving anything."""
        return {Word2VecObjective.name: torch.tensor(measured(model, micro_batch).total)}

    def update(self, model: nn.Module, micro_batch: WindowBatch, rate: float) -> dict[str, tuple[float, float]]:
        """Move the vectors; several workers do so at the same time, without waiting for each other."""
        blocks, workers = micro_batch.windows.blocks, micro_batch.workers
        edges = [blocks * worker // workers for worker in range(workers + 1)]
        with _threads(workers) as run:
            found = list(run(lambda part: _moved(model, micro_batch, part[0], part[1], rate), pairwise(edges)))
        loss = sum(found, Loss())
        return {Word2VecObjective.name: (loss.total, loss.pairs)}


def _moved(model: nn.Module, micro_batch: WindowBatch, first: int, last: int, rate: float) -> Loss:
    inputs, outputs = encoder_of(model).token_matrix.data, model.get_parameter("output.weight").data
    loss, how = Loss(), micro_batch.how
    for move, start in enumerate(range(first, last, BLOCKS_AT_ONCE)):
        part = micro_batch.windows.part(start, min(start + BLOCKS_AT_ONCE, last), how.window)
        loss += update(inputs, outputs, part, how, rate, measured=move % MEASURED == 0)
    return loss


def measured(model: nn.Module, micro_batch: WindowBatch) -> Loss:
    """The loss of a micro-batch, with nothing moved."""
    inputs, outputs = encoder_of(model).token_matrix.data, model.get_parameter("output.weight").data
    loss, how, blocks = Loss(), micro_batch.how, micro_batch.windows.blocks
    for start in range(0, blocks, BLOCKS_AT_ONCE):
        part = micro_batch.windows.part(start, min(start + BLOCKS_AT_ONCE, blocks), how.window)
        loss += update(inputs, outputs, part, how, rate=0.0)
    return loss


@contextmanager
def _threads(workers: int) -> Iterator[Callable[..., Any]]:
    """A `map` over so many threads, each with one of torch's; over one it is Python's own, with all of torch's."""
    if workers == 1:
        yield map
        return
    before = torch.get_num_threads()
    with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        yield pool.map
    torch.set_num_threads(before)


class Word2VecExamination:
    """The loss on a stretch of held-out text, and the words that are nearest to a few frequent ones."""

    def __init__(self, corpus: Corpus, recipe: Word2VecRecipe) -> None:
        text = running_words(corpus, recipe, "held_out")
        self.batch = WindowBatches(text, recipe).of_stretches(np.arange(min(len(text), 50)))
        self.text = running_words(corpus, recipe)

    def scores(self, model: nn.Module) -> dict[str, float]:
        """The mean loss of a pair of words."""
        loss = measured(model, self.batch.to(str(encoder_of(model).token_matrix.device)))
        return {"word2vec_loss": loss.total / max(loss.pairs, 1.0)}

    def shown(self, model: nn.Module) -> list[dict[str, Any]]:
        """The nearest words of some that are neither rare nor in every sentence."""
        vocabulary, counts = self.text.vocabulary, self.text.counts
        long = [i for i in np.argsort(-counts, kind="stable")[:2000].tolist() if counts[i] and len(vocabulary[i]) > 1]
        matrix = nn.functional.normalize(encoder_of(model).token_matrix.detach().cpu(), dim=1)
        matrix[torch.from_numpy(counts == 0)] = 0.0
        shown = []
        for i in long[100::100][:SHOWN] or long[:SHOWN]:
            values, ids = (matrix @ matrix[i]).topk(min(4, len(matrix)))
            near = [f"{vocabulary[j]} {v:.2f}" for j, v in zip(ids.tolist(), values.tolist(), strict=True) if j != i]
            shown.append({"word": vocabulary[i], "nearest, by cosine": ", ".join(near[:3])})
        return shown


def tokenizer_of(text: RunningWords, corpus: Corpus, recipe: Word2VecRecipe) -> Tokenizer:
    """What reads texts for the model: the corpus's own tokenizer without its frame, or one of whole words."""
    if recipe.unit == "word":
        return word_tokenizer(text.vocabulary, not recipe.cased)
    return corpus.tokenizer.without_frame()
