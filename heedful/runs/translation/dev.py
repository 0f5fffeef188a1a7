"""Evaluation on the dev pairs while a translation run goes on, and the choice between the best and an average."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from heedful.checkpoints.own_weights import averaged, weights_of
from heedful.checkpoints.translation_folder import TranslationModel
from heedful.data.bitext.source import micro_batches_of
from heedful.inference.workers import worker_pool
from heedful.runs.judge import Judge
from heedful.runs.translation.material import Material
from heedful.runs.translation.plan import Plan
from heedful.tasks.translate import mean_loss
from heedful.tasks.translate_decoding import decode
from heedful.tasks.translate_scores import Scorer
from heedful.text.sides import Symbols
from heedful.training.training_config import TrainingConfig

EXAMPLES_SHOWN = 3


@dataclass(frozen=True)
class Judged:
    """What a model says to the dev sources, and how good it is."""

    scores: Mapping[str, float]
    translations: Sequence[str]


class Dev(Judge[Judged]):
    """Judges a model by what it says to the dev sources."""

    def __init__(self, material: Material, plan: Plan, limit: int) -> None:
        super().__init__()
        assert material.dev_encoded is not None
        self.pairs, self.target = material.dev, material.sides.target
        texts = [pair.source for pair in self.pairs]
        self.sources = [encoding.ids for encoding in material.sides.source.encode_batch(texts, limit, offsets=False)]
        self.micro_batches = list(micro_batches_of(material.dev_encoded, plan.batch_size))
        self.scorer = Scorer([pair.target for pair in self.pairs], plan.bleu_tokenizer)
        self.symbols, self.limit, self.beam = Symbols.of(self.target), limit, plan.beam

    def judge(self, model: nn.Module) -> Judged:
        """The loss of a symbol, its perplexity, and BLEU and chrF of what the model says."""
        assert isinstance(model, TranslationModel)
        loss = mean_loss(model, self.micro_batches)
        with worker_pool() as pool:
            said = decode(model, self.sources, self.symbols, self.limit, self.beam, pool.map)
        translations = [self.target.decode(ids) for ids in said]
        scores = {"loss": loss, "perplexity": _exponential(loss), **self.scorer.scores(translations)}
        return Judged(scores, translations)

    def examples(self, model: nn.Module) -> list[dict[str, str]]:
        """A few sources from all over the dev data, what the model said to them last, and what it should have said."""
        if self.last is None:
            self.evaluate(model)
        assert self.last is not None
        shown = min(EXAMPLES_SHOWN, len(self.pairs))
        numbers = [(2 * i + 1) * len(self.pairs) // (2 * shown) for i in range(shown)]
        return [
            {
                "source": self.pairs[i].source,
                "translation": self.last.translations[i],
                "reference": self.pairs[i].target,
            }
            for i in numbers
        ]

    def take_average_if_better(self, model: nn.Module, folders: Sequence[Path], training: TrainingConfig) -> str:
        """Give the model the mean of several folders of weights if it is better by the score that decides.

        Gives what there is to tell about it.
        """
        assert training.best is not None
        before = self.judged(model)
        own = {name: tensor.detach().clone() for name, tensor in weights_of(model).items()}
        _put(model, averaged(folders))
        self.evaluate(model.eval())
        assert self.last is not None
        old, new = before.scores[training.best], self.last.scores[training.best]
        better = new >= old if training.higher_is_better else new <= old
        if better:
            self.kept = self.last
        else:
            _put(model, own)
        said = (
            f"the average of the last {len(folders)} checkpoints has {training.best} {new:.4g}, the best one {old:.4g}"
        )
        return f"{said}: {'the average' if better else 'the best one'} is kept"


def _put(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    with torch.no_grad():
        for name, tensor in weights_of(model).items():
            tensor.copy_(weights[name])


def _exponential(loss: float) -> float:
    return math.exp(loss) if loss < 700 else math.inf
