"""BERT's objective for a run: masked words and pairs, beside what counting alone reaches on the very same tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from torch import Tensor, nn

from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.examples import ExampleMaker, Recipe, check_mask_tokens
from heedful.data.corpus.ngrams import NgramBaselines
from heedful.data.corpus.source import MaskedBatches, held_out_micro_batches
from heedful.data.corpus.written import WrittenExamples
from heedful.tasks.pretraining import evaluate, filled_in, pretraining_losses
from heedful.tasks.pretraining_objective import PretrainingObjective

EXAMPLES_SHOWN = 4


class MaskedObjective(PretrainingObjective):
    """Predict the masked tokens, and whether B follows A."""

    name = "mlm"
    rate_from_random = 0.5  # at the whole of it, a BERT-mini never left the loss of word frequencies
    recipe = Recipe
    settings: ClassVar[Mapping[str, str]] = {
        "pairs": "pairs",
        "single_sentences": "single_sentences",
        "masking": "masking",
        "mask_rate": "rate",
        "pairs_share": "",  # of when there are pairs,
        "duplicates": "",  # and of where the examples come from, not of how they are made
    }
    use = '    heedful fill FOLDER "some text with a [MASK] in it"\n    heedful embed FOLDER lines.txt -o vectors.npy'

    def check(self, corpus: Corpus) -> None:
        check_mask_tokens(corpus.tokenizer)

    def batches(self, corpus: Corpus, recipe: Recipe) -> MaskedBatches:
        return MaskedBatches(ExampleMaker(corpus, recipe))

    def written_ahead(self, corpus: Corpus, recipe: Recipe, duplicates: int) -> MaskedBatches:
        return MaskedBatches(WrittenExamples(corpus, recipe, duplicates))

    def losses(self, model: nn.Module, micro_batch: Any) -> dict[str, Tensor]:
        return pretraining_losses(model, micro_batch)

    def examination(
        self, corpus: Corpus, recipe: Recipe, batch_size: int, most: int, tell: Callable[[str], object]
    ) -> MaskedExamination:
        return MaskedExamination(corpus, recipe, batch_size, most, tell)

    def described(self, recipe: Recipe) -> str:
        return f"masked language model: {recipe.masking} masking, {recipe.rate:.0%}; pairs: {recipe.pairs}"


def held_out_examples(corpus: Corpus, recipe: Recipe) -> ExampleMaker:
    """The held-out examples of a recipe."""
    # Predicting more tokens from fewer is harder: the usual share for all, so that runs can be compared.
    return ExampleMaker(corpus, replace(recipe, rate=Recipe.rate), "held_out")


class MaskedExamination:
    """Masked held-out examples, and unigrams and bigrams that guess the same tokens."""

    def __init__(
        self, corpus: Corpus, recipe: Recipe, batch_size: int, most: int, tell: Callable[[str], object]
    ) -> None:
        self.maker, self.size, self.tokenizer = held_out_examples(corpus, recipe), batch_size, corpus.tokenizer
        self.most = min(most, len(self.maker))
        tell("counting words for the unigram and bigram baselines")
        batches = (self.maker.take(np.arange(i, min(i + 64, self.most))) for i in range(0, self.most, 64))
        scores = NgramBaselines(corpus).score(batches)
        self.baselines = {
            "unigram_loss": scores.unigram_loss,
            "bigram_loss": scores.bigram_loss,
            "bigram_accuracy": scores.bigram_accuracy,
        }

    def scores(self, model: nn.Module) -> dict[str, float]:
        """Those of both objectives, and the baselines."""
        return {**evaluate(model, held_out_micro_batches(self.maker, self.size, self.most)), **self.baselines}

    def shown(self, model: nn.Module) -> list[dict[str, Any]]:
        """A masked word of each of a few held-out examples, and what the model takes it for."""
        return filled_in(model, self.maker.take(np.arange(min(EXAMPLES_SHOWN, self.most))), self.tokenizer)
