"""The permutation language model: each predicted token from those that come before it in a random order."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from heedful.checkpoints.encoder_folder import save_model
from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.examples import check_mask_tokens
from heedful.data.corpus.ngrams import NgramBaselines
from heedful.data.corpus.permuted import (
    ENDING,
    PermutationRecipe,
    PermutedBatches,
    PermutedExamples,
    PermutedLanes,
    PermutedMicroBatch,
    as_permuted,
)
from heedful.data.corpus.phases import Batches
from heedful.errors import HeedfulError
from heedful.models.xlnet_lm import XlnetForPretraining
from heedful.nn.cross_entropy import summed_cross_entropy
from heedful.tasks.pretraining_objective import PretrainingObjective, Remembering
from heedful.text.xlnet_pipeline import framed_at_the_end

EXAMPLES_SHOWN = 4
LOSS = "permutation"
State = dict[str, Tensor]


class PermutationObjective(PretrainingObjective):
    """Predict the last 1/K tokens of a random order."""

    name = "permutation"
    recipe = PermutationRecipe
    use = "    heedful embed FOLDER lines.txt -o vectors.npy\n    heedful score FOLDER lines.txt"
    settings: ClassVar[Mapping[str, str]] = {"predict_one_in": "predict_one_in", "memory": "memory"}

    def check(self, corpus: Corpus) -> None:
        check_mask_tokens(corpus.tokenizer, corpus.folder)

    def batches(self, corpus: Corpus, recipe: PermutationRecipe) -> Batches:
        return PermutedLanes(corpus, recipe) if recipe.memory else PermutedBatches(PermutedExamples(corpus, recipe))

    def losses(self, model: nn.Module, micro_batch: PermutedMicroBatch) -> dict[str, Tensor]:
        return {LOSS: summed_cross_entropy(logits(model, micro_batch), micro_batch.labels)}

    def in_run(self, model: nn.Module, lanes: int, recipe: PermutationRecipe) -> Any:
        if not recipe.memory:
            return self.losses
        encoder = cast(XlnetForPretraining, model).encoder
        for name in ("mem_len", "reuse_len"):
            if getattr(encoder.config, name) is not None:
                what = f"`memory` does not go with {name} {getattr(encoder.config, name)} of the model's config"
                raise HeedfulError(what, remedy=f"leave one of them out: `memory` is what {name} means in training")
        shape = (lanes, encoder.layer_count, recipe.memory, encoder.width)
        return Remembering(remembering_losses, {"memory": torch.zeros(shape)})

    def examination(
        self, corpus: Corpus, recipe: PermutationRecipe, batch_size: int, most: int, tell: Callable[[str], object]
    ) -> PermutedExamination:
        return PermutedExamination(corpus, recipe, batch_size, most, tell)

    def described(self, recipe: PermutationRecipe) -> str:
        told = f"permutation language model: the last 1/{recipe.predict_one_in} of a random order is predicted"
        return f"{told}, with a memory of {recipe.memory} tokens" if recipe.memory else told

    def save(self, model: nn.Module, folder: Path, corpus: Corpus, recipe: Any) -> None:
        save_model(model, folder, framed_at_the_end(corpus.tokenizer), overwrite=True)


def remembering_losses(
    model: nn.Module, micro_batch: PermutedMicroBatch, before: State
) -> tuple[dict[str, Tensor], State]:
    """The loss where the text before is seen too, and what is seen of this one afterwards: not its [SEP] and [CLS].

    Like the original, a text that begins sees a memory of zeros.
    """
    xlnet, memory = cast(XlnetForPretraining, model), before["memory"]
    found = xlnet.encoder.predictions(micro_batch.batch, micro_batch.order, micro_batch.targets, memory.unbind(1))
    assert found.memory is not None
    after = torch.stack([layer[:, :-ENDING][:, -memory.shape[2] :] for layer in found.memory], 1)
    return {LOSS: summed_cross_entropy(xlnet.logits(found.last), micro_batch.labels)}, {"memory": after}


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
