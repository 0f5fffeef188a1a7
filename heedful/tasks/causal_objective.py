"""Language modelling from left to right: say what comes next, in windows (GPT) or along lanes with a state (LSTM)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from heedful.checkpoints.encoder_folder import save_model
from heedful.data.corpus.causal import CausalMicroBatch, CausalRecipe, LaneRecipe, Lanes, Windows, held_out_windows
from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.ngrams import NgramBaselines
from heedful.data.corpus.phases import Batches
from heedful.data.corpus.recipe import ExampleRecipe
from heedful.data.corpus.stream import TokenStream
from heedful.models.language_model import LanguageModel
from heedful.models.lstm_lm import Lstm
from heedful.tasks.pretraining_objective import Losses, PretrainingObjective, Remembering
from heedful.text.ends import Ends
from heedful.text.tokenizer import Tokenizer

EXAMPLES_SHOWN = 4
LOSS = "lm"
State = dict[str, Tensor]


class CausalObjective(PretrainingObjective):
    """Independent windows of text: for a model that sees no further than its window."""

    name = "causal"
    recipe: ClassVar[type[ExampleRecipe]] = CausalRecipe
    use = '    heedful generate FOLDER "some text to go on with"\n    heedful score FOLDER lines.txt'

    def check(self, corpus: Corpus) -> None:
        Ends.of(corpus.tokenizer)

    def batches(self, corpus: Corpus, recipe: ExampleRecipe) -> Batches:
        return Windows(TokenStream.of(corpus), recipe.max_length, recipe.seed, corpus.folder)

    def losses(self, model: nn.Module, micro_batch: CausalMicroBatch) -> Losses:
        return {LOSS: next_token_loss(model, micro_batch)[0]}

    def examination(
        self, corpus: Corpus, recipe: ExampleRecipe, batch_size: int, most: int, tell: Callable[[str], object]
    ) -> CausalExamination:
        return CausalExamination(corpus, recipe.max_length, batch_size, most, tell, lanes=False)

    def described(self, recipe: ExampleRecipe) -> str:
        return "language model from left to right, on windows of text"

    def save(self, model: nn.Module, folder: Path, corpus: Corpus, recipe: Any) -> None:
        ends = Ends.of(corpus.tokenizer)
        foreign = {"bos_token_id": ends.start, "eos_token_id": ends.end}
        save_model(model, folder, corpus.tokenizer, foreign=foreign, overwrite=True)


class LaneObjective(CausalObjective):
    """Lanes of text through which a state is carried: truncated back-propagation through time.

    The gradient goes back to where a step began, and the state came from further away.
    """

    name = "bptt"
    recipe: ClassVar[type[ExampleRecipe]] = LaneRecipe

    def batches(self, corpus: Corpus, recipe: ExampleRecipe) -> Batches:
        return Lanes(TokenStream.of(corpus), recipe.max_length, corpus.folder)

    def in_run(self, model: nn.Module, lanes: int, recipe: Any) -> Remembering:
        return Remembering(self._on, fresh_state(model, lanes))

    def _on(self, model: nn.Module, micro_batch: CausalMicroBatch, before: State) -> tuple[Losses, State]:
        loss, after = next_token_loss(model, micro_batch, before)
        return {LOSS: loss}, after

    def examination(
        self, corpus: Corpus, recipe: ExampleRecipe, batch_size: int, most: int, tell: Callable[[str], object]
    ) -> CausalExamination:
        return CausalExamination(corpus, recipe.max_length, batch_size, most, tell, lanes=True)

    def described(self, recipe: ExampleRecipe) -> str:
        return "language model from left to right, the state carried on through the text"


def fresh_state(model: nn.Module, lanes: int) -> State:
    """What a model carries from batch to batch, at its start: (lanes, …) zeros for each tensor of its memory."""
    shapes = cast(Lstm, model.get_submodule("encoder")).memory_shapes
    return {name: torch.zeros(lanes, *shape) for name, shape in shapes.items()}


def next_token_loss(
    model: nn.Module, micro_batch: CausalMicroBatch, before: State | None = None
) -> tuple[Tensor, State]:
    """The summed cross-entropy of all next tokens, and what the model carries on."""
    lm = cast(LanguageModel, model)
    encoded = lm.encoder(micro_batch.batch, memory=None if before is None else tuple(before.values()))
    loss = lm.loss(encoded.last, micro_batch.labels)
    return loss, dict(zip(before or {}, encoded.memory or (), strict=bool(before)))


class CausalExamination:
    """The perplexity on held-out text, beside what counting alone reaches on its words, and guesses to look at."""

    def __init__(
        self, corpus: Corpus, length: int, batch_size: int, most: int, tell: Callable[[str], object], lanes: bool
    ) -> None:
        self.stream, self.tokenizer = TokenStream.of(corpus, "held_out"), corpus.tokenizer
        self.length, self.size, self.most, self.lanes = length, batch_size, most, lanes
        tell("counting words for the unigram and bigram baselines")
        pairs = [(one.labels.numpy(), one.batch.ids.numpy()) for one in self._micro_batches()]
        self.baselines = NgramBaselines(corpus).losses(*(np.concatenate(part) for part in zip(*pairs, strict=True)))

    def _micro_batches(self) -> Iterator[CausalMicroBatch]:
        return held_out_windows(self.stream, self.length, self.size, self.most, self.lanes)

    def scores(self, model: nn.Module) -> dict[str, float]:
        """Loss and perplexity of a token."""
        return {**evaluate(model, self._micro_batches(), self.lanes), **self.baselines}

    def shown(self, model: nn.Module) -> list[dict[str, Any]]:
        """The likeliest next tokens after a few beginnings, and what came."""
        first = next(self._micro_batches(), None)
        return [] if first is None else guessed(cast(LanguageModel, model), first, self.tokenizer)


def evaluate(model: nn.Module, micro_batches: Iterable[CausalMicroBatch], lanes: bool = False) -> dict[str, float]:
    """Mean loss and perplexity of a token; along lanes the state goes on from one micro-batch to the next."""
    total, count = 0.0, 0
    state: State | None = None
    device = str(cast(LanguageModel, model).device)
    for given in micro_batches:
        micro_batch = given.to(device)
        if lanes and state is None:
            state = {name: tensor.to(device) for name, tensor in fresh_state(model, len(micro_batch.lanes)).items()}
        loss, state = next_token_loss(model, micro_batch, state if lanes else None)
        total, count = total + float(loss), count + len(micro_batch.labels)
    mean = total / count if count else math.nan
    return {f"{LOSS}_loss": mean, f"{LOSS}_perplexity": math.exp(min(mean, 700.0))}


def guessed(
    model: LanguageModel, micro_batch: CausalMicroBatch, tokenizer: Tokenizer, top: int = 3
) -> list[dict[str, Any]]:
    """For each of a few stretches its beginning, the token that came next, and the likeliest guesses."""
    shown = []
    length, pieces = micro_batch.batch.lengths[0], tokenizer.vocabulary
    moved = micro_batch.to(str(model.device))
    states = model.encoder(moved.batch).last
    for row in range(min(EXAMPLES_SHOWN, len(micro_batch.batch.lengths))):
        place = row * length + (length * 2) // 3
        values, ids = model.logits(states[place : place + 1])[0].softmax(-1)[: len(pieces)].topk(top)
        left = micro_batch.batch.ids[max(row * length, place - 24) : place + 1].tolist()
        guesses = [[pieces[i], round(value, 4)] for i, value in zip(ids.tolist(), values.tolist(), strict=True)]
        truth = pieces[int(micro_batch.labels[place])]
        shown.append({"text": f"{tokenizer.decode(left)} [___]", "truth": truth, "guesses": guesses})
    return shown
