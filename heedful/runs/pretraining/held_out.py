"""What a pretraining run is told about held-out documents at each evaluation: numbers, and masked words filled in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import nn

from heedful.data.corpus.corpus import Corpus
from heedful.data.corpus.examples import ExampleMaker
from heedful.data.corpus.ngrams import NgramBaselines
from heedful.data.corpus.source import held_out_micro_batches
from heedful.inference.masked_lm import MaskedLm
from heedful.inference.pseudo_perplexity import Score, score_sequences
from heedful.models.encoder import encoder_of
from heedful.runs.judge import Judge
from heedful.runs.pretraining.plan import Plan
from heedful.tasks.objectives import PretrainingObjective

# A token of the pseudo-perplexity costs a forward pass of its sentence, so a thousand must do at each evaluation.
SCORED_TOKENS = 1000
EXAMPLES_SHOWN = 4


@dataclass(frozen=True)
class Judged:
    """The numbers of one evaluation."""

    scores: Mapping[str, float]


class HeldOut(Judge[Judged]):
    """Evaluation on held-out documents, beside what counting alone reaches on the very same tokens."""

    def __init__(
        self, plan: Plan, corpus: Corpus, objective: PretrainingObjective, note: Callable[[str], object]
    ) -> None:
        super().__init__()
        self.objective = objective
        self.maker: ExampleMaker = plan.held_out(corpus)
        self.size = plan.batch_sizes[-1]
        self.most = min(plan.evaluated_examples, len(self.maker))
        note("counting words for the unigram and bigram baselines")
        batches = (self.maker.take(np.arange(i, min(i + 64, self.most))) for i in range(0, self.most, 64))
        scores = NgramBaselines(corpus).score(batches)
        self.baselines = {
            "unigram_loss": scores.unigram_loss,
            "bigram_loss": scores.bigram_loss,
            "bigram_accuracy": scores.bigram_accuracy,
        }
        self.tokenizer = corpus.tokenizer
        self.sentences = sentences_of(corpus, max(plan.lengths))

    def judge(self, model: nn.Module) -> Judged:
        """The numbers of both objectives, and the baselines."""
        found = self.objective.evaluate(model, held_out_micro_batches(self.maker, self.size, self.most))
        lm = MaskedLm(encoder_of(model), model.get_submodule("mlm"), self.tokenizer)
        pseudo = sum(score_sequences(lm, self.sentences), Score())
        return Judged({**found, "pseudo_perplexity": pseudo.perplexity, **self.baselines})

    def examples(self, model: nn.Module) -> list[dict[str, Any]]:
        """A masked word of each of a few held-out examples, and what the model takes it for."""
        return self.objective.shown(model, self.maker.take(np.arange(min(EXAMPLES_SHOWN, self.most))), self.tokenizer)


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
