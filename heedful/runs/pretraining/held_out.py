"""What a pretraining run is told about held-out documents at each evaluation: numbers, and examples to look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import nn

from heedful.checkpoints.families import family_named
from heedful.data.corpus.corpus import Corpus
from heedful.inference.masked_lm import MaskedLm
from heedful.inference.pseudo_perplexity import Score, score_sequences
from heedful.models.encoder import encoder_of
from heedful.runs.judge import Judge
from heedful.runs.pretraining.plan import Plan
from heedful.tasks.pretraining_objective import PretrainingObjective

# A token of the pseudo-perplexity costs a forward pass of its sentence, so a thousand must do at each evaluation.
SCORED_TOKENS = 1000


@dataclass(frozen=True)
class Judged:
    """The numbers of one evaluation."""

    scores: Mapping[str, float]


class HeldOut(Judge[Judged]):
    """The objective's own examination, and the pseudo-perplexity of a model that guesses masked tokens."""

    def __init__(
        self, plan: Plan, corpus: Corpus, objective: PretrainingObjective, note: Callable[[str], object]
    ) -> None:
        super().__init__()
        size, most = plan.batch_sizes[-1], plan.evaluated_examples
        self.examination = objective.examination(corpus, plan.longest, size, most, note)
        self.tokenizer = corpus.tokenizer
        masked = family_named(plan.model.model_type).masked_lm is not None
        self.sentences = sentences_of(corpus, max(plan.lengths)) if masked else []

    def judge(self, model: nn.Module) -> Judged:
        """The numbers of the examination, and the pseudo-perplexity."""
        return Judged({**self.examination.scores(model), **self._pseudo_perplexity(model)})

    def examples(self, model: nn.Module) -> list[dict[str, Any]]:
        """What the model makes of a few held-out examples."""
        return self.examination.shown(model)

    def _pseudo_perplexity(self, model: nn.Module) -> dict[str, float]:
        if not self.sentences:
            return {}
        lm = MaskedLm(encoder_of(model), model.get_submodule("mlm"), self.tokenizer)
        return {"pseudo_perplexity": sum(score_sequences(lm, self.sentences), Score()).perplexity}


def sentences_of(corpus: Corpus, longest: int) -> list[list[int]]:
    """Held-out sentences from all over the text, as [CLS] … [SEP], of about SCORED_TOKENS tokens together."""
    text, tokenizer = corpus.held_out, corpus.tokenizer
    starts, left = text.sentence_starts, SCORED_TOKENS
    chosen = []
    for number in np.random.default_rng(0).permutation(text.sentences).tolist():
        start, stop = int(starts[number]), int(starts[number + 1])
        if 8 <= stop - start <= longest - 2:
            chosen.append([tokenizer.cls_id, *text.read("tokens", start, stop).tolist(), tokenizer.sep_id])
            left -= stop - start
        if left <= 0:
            break
    return chosen
