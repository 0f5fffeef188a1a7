"""The permutation language model: each predicted token from those that come before it in a random order."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
from torch import Tensor, nn

from heedful.checkpoints.encoder_folder import save_model
from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.examples import check_mask_tokens
from heedful.data.corpus.ngrams import NgramBaselines
from heedful.data.corpus.permuted import (
    PermutationRecipe,
    PermutedBatches,
    PermutedExamples,
    PermutedMicroBatch,
    as_permuted,
)
from heedful.models.xlnet_lm import XlnetForPretraining
from heedful.nn.cross_entropy import summed_cross_entropy
from heedful.tasks.pretraining_objective import PretrainingObjective
from heedful.text.xlnet_pipeline import framed_at_the_end

EXAMPLES_SHOWN = 4


class PermutationObjective(PretrainingObjective):
    """Predict the last 1/K tokens of a random order."""

    name = "permutation"
    recipe = PermutationRecipe
    settings: ClassVar[Mapping[str, str]] = {"predict_one_in": "predict_one_in"}

    def check(self, corpus: Corpus) -> None:
        check_mask_tokens(corpus.tokenizer, corpus.folder)

    def batches(self, corpus: Corpus, recipe: PermutationRecipe) -> PermutedBatches:
        return PermutedBatches(PermutedExamples(corpus, recipe))

    def losses(self, model: nn.Module, micro_batch: PermutedMicroBatch) -> dict[str, Tensor]:
        return {"permutation": summed_cross_entropy(logits(model, micro_batch), micro_batch.labels)}

    def examination(
        self, corpus: Corpus, recipe: PermutationRecipe, batch_size: int, most: int, tell: Callable[[str], object]
    ) -> PermutedExamination:
        return PermutedExamination(corpus, recipe, batch_size, most, tell)

    def described(self, recipe: PermutationRecipe) -> str:
        return f"permutation language model: the last 1/{recipe.predict_one_in} of a random order is predicted"

    def save(self, model: nn.Module, folder: Path, corpus: Corpus, recipe: Any) -> None:
        save_model(model, folder, framed_at_the_end(corpus.tokenizer), overwrite=True)


def logits(model: nn.Module, micro_batch: PermutedMicroBatch) -> Tensor:
    """What the query stream expects at the predicted places, (M, V)."""
    permuted = cast(XlnetForPretraining, model)
    states = permuted.encoder.predictions(micro_batch.batch, micro_batch.order, micro_batch.targets).last
    return permuted.logits(states)


class PermutedExamination:
    """Held-out examples, and unigrams and bigrams that guess the same tokens."""

    def __init__(
        self, corpus: Corpus, recipe: PermutationRecipe, batch_size: int, most: int, tell: Callable[[str], object]
    ) -> None:
        self.maker, self.size = PermutedExamples(corpus, recipe, "held_out"), batch_size
        self.most, self.tokenizer = min(most, len(self.maker)), corpus.tokenizer
        tell("counting words for the unigram and bigram baselines")
        parts = (np.arange(start, min(start + 64, self.most)) for start in range(0, self.most, 64))
        counted = NgramBaselines(corpus).score(self.maker.take(numbers)[0] for numbers in parts)
        self.baselines = {"unigram_loss": counted.unigram_loss, "bigram_loss": counted.bigram_loss}

    def scores(self, model: nn.Module) -> dict[str, float]:
        """Mean loss, share of right guesses and perplexity, and the baselines."""
        loss, right, count = 0.0, 0, 0
        for start in range(0, self.most, self.size):
            one = self._taken(np.arange(start, min(start + self.size, self.most)), model)
            guesses = logits(model, one)
            loss += float(nn.functional.cross_entropy(guesses, one.labels, reduction="sum"))
            right += int((guesses.argmax(-1) == one.labels).sum())
            count += len(one.labels)
        mean = loss / max(count, 1)
        own = {"permutation_loss": mean, "permutation_accuracy": right / max(count, 1)}
        return {**own, "permutation_perplexity": math.exp(mean), **self.baselines}

    def shown(self, model: nn.Module, around: int = 12, top: int = 3) -> list[dict[str, Any]]:
        """The first predicted token of a few held-out examples, hidden ones as …, and what the model takes it for."""
        pieces, shown = self.tokenizer.vocabulary, []
        for number in range(min(EXAMPLES_SHOWN, self.most)):
            one = self._taken(np.array([number]), model)
            row = int((one.order[one.targets] == 0).nonzero()[0])
            values, ids = logits(model, one)[row].softmax(-1)[: len(pieces)].topk(top)
            seen = [pieces[i] if turn < 0 else "…" for i, turn in zip(one.batch.ids.tolist(), one.order, strict=True)]
            place = int(one.targets[row])
            words = [*seen[max(0, place - around) : place], "[___]", *seen[place + 1 : place + around + 1]]
            guesses = [[pieces[i], round(p, 4)] for i, p in zip(ids.tolist(), values.tolist(), strict=True)]
            text = " ".join(words).replace(" ##", "")
            shown.append({"text": text, "truth": pieces[int(one.labels[row])], "guesses": guesses})
        return shown

    def _taken(self, numbers: Any, model: nn.Module) -> PermutedMicroBatch:
        return as_permuted(*self.maker.take(numbers)).to(str(cast(XlnetForPretraining, model).device))
