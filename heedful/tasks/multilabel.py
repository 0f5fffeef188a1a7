"""Several labels for one text, or none: each is decided by itself, by a sigmoid of its own and one common threshold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.data.labelled.dataset import Columns, Dataset, MultiLabelRow, Remark, TextRow
from heedful.data.labelled.multi_label_rows import read_multi_label_rows
from heedful.errors import HeedfulError
from heedful.models.encoder import Encoder
from heedful.tasks.classify import label_order
from heedful.tasks.label_metrics import LabelScores
from heedful.tasks.task import Detail, Item, Prediction
from heedful.tasks.text_items import TextTask, mean_outputs
from heedful.tasks.thresholds import best_threshold
from heedful.tasks.unseen import all_labels, refuse_strangers, unseen_labels
from heedful.text.rows import DataSource
from heedful.text.tokenizer import Tokenizer

HEAVIEST = 100.0  # a label's rows count at most so much more than those without it


@dataclass(frozen=True)
class MultiLabel(TextTask):
    """Which labels? The scores: F1 over all decisions, the mean F1 of the labels, the share of rows all right."""

    name: ClassVar[str] = "multilabel"
    best: ClassVar[str] = "f1"
    scores: ClassVar[tuple[str, ...]] = ("f1", "macro_f1", "accuracy")

    labels: tuple[str, ...] = ()
    threshold: float = 0.5  # a label is given from this probability on; tuned on dev
    balance: bool = False
    weights: tuple[float, ...] = ()  # how much more a row with the label counts than one without it

    @classmethod
    def read(cls, path: DataSource, columns: Columns, labelled: bool = True) -> Dataset[TextRow]:
        """Rows of a table or JSON-lines file."""
        found = read_multi_label_rows(path, columns, labelled)
        return Dataset(list(found.examples), found.remarks, found.bad)

    @classmethod
    def fit(cls, examples: Sequence[TextRow], **fields: Any) -> MultiLabel:
        """The labels that occur, sorted: numbers by size, everything else by spelling."""
        counts = Counter(label for row in examples for label in _labels(row))
        if not counts:
            where = examples[0].where or None if examples else None
            remedy = "give labels, separated in one column, or name columns of 0 and 1 with `label` a,b,c"
            raise HeedfulError("no row has a label", where=where, remedy=remedy)
        labels = sorted(counts, key=label_order)
        task = cls(labels=tuple(labels), **fields)
        if not task.balance:
            return task
        others = (len(examples) / counts[label] - 1 for label in labels)
        return replace(task, weights=tuple(min(max(other, 1 / HEAVIEST), HEAVIEST) for other in others))

    def check(self, examples: Sequence[TextRow]) -> None:
        """Refuse rows of which nobody knows the labels, and such as have nothing in common with the training data."""
        for row in examples:
            if not isinstance(row, MultiLabelRow) or row.labels is None:
                raise HeedfulError("the row has no labels", where=row.where or None, remedy="give the column of labels")
        refuse_strangers(_placed(examples), self.labels)

    def unseen(self, examples: Sequence[TextRow]) -> tuple[Remark, ...]:
        """Labels that training never showed: the model cannot give them."""
        return unseen_labels(_placed(examples), self.labels, "label")

    def encode(self, examples: Sequence[TextRow], tokenizer: Tokenizer) -> list[Item]:
        """One item a row, or with a stride one for each window."""
        return self.items(examples, tokenizer, self._target)

    def _target(self, row: TextRow) -> tuple[float, ...]:
        if not isinstance(row, MultiLabelRow) or row.labels is None:
            return ()
        return tuple(float(label in row.labels) for label in self.labels)

    def model(self, encoder: Encoder) -> nn.Module:
        """A logit for each label from what sums the text up."""
        return self.classifier(encoder, len(self.labels))

    def loss(self, model: nn.Module, outputs: Tensor, counts: Sequence[int], targets: Tensor) -> Tensor:
        """Binary cross-entropy, the mean over the labels of a row, as Hugging Face's class has it."""
        weights = outputs.new_tensor(self.weights) if self.weights else None
        wanted = targets.to(outputs.dtype).view(-1, len(self.labels))
        summed = F.binary_cross_entropy_with_logits(outputs, wanted, reduction="sum", pos_weight=weights)
        return summed / len(self.labels)

    def decode(
        self, model: nn.Module, examples: Sequence[TextRow], items: Sequence[Item], outputs: Sequence[Sequence[Tensor]]
    ) -> list[Prediction]:
        """The labels above the threshold, and the probabilities of all; the logits of several windows are averaged.

        `probability` is how sure the decisions are, on average.
        """
        if not examples:
            return []
        shares = mean_outputs(len(examples), items, outputs).sigmoid()
        sure = torch.maximum(shares, 1 - shares).mean(-1).tolist()
        return [self._prediction(row, mean) for row, mean in zip(shares.tolist(), sure, strict=True)]

    def _prediction(self, shares: Sequence[float], sure: float) -> Prediction:
        named = dict(zip(self.labels, shares, strict=True))
        given = [label for label, share in named.items() if share >= self.threshold]
        return {"labels": given, "probability": sure, "probabilities": named}

    def tuned(self, examples: Sequence[TextRow], predictions: Sequence[Prediction]) -> MultiLabel:
        """The task with the threshold that gives these predictions the best F1."""
        shares = np.array([[said["probabilities"][label] for label in self.labels] for said in predictions])
        truth = np.array([self._target(row) for row in examples]) > 0
        return replace(self, threshold=best_threshold(shares.ravel(), truth.ravel()))

    @property
    def rule(self) -> str:
        """The threshold of all labels."""
        return f"each label is given from a probability of {self.threshold:.3g} on"

    def said(self, prediction: Prediction) -> str:
        """The labels."""
        return MultiLabelRow("", labels=tuple(prediction["labels"])).truth

    def score(self, examples: Sequence[TextRow], predictions: Sequence[Prediction]) -> Mapping[str, float]:
        """F1 over all decisions, the mean of the labels' own, and the share of rows with exactly the right labels."""
        by_label = self._by_label(examples, predictions)
        totals = np.sum(list(by_label.values()), axis=0).tolist()
        exact = [set(_labels(row)) == set(said["labels"]) for row, said in zip(examples, predictions, strict=True)]
        return {
            "f1": LabelScores.of("", *totals).f1,
            "macro_f1": float(np.mean([LabelScores.of(label, *counts).f1 for label, counts in by_label.items()])),
            "accuracy": float(np.mean(exact)),
        }

    def _by_label(
        self, examples: Sequence[TextRow], predictions: Sequence[Prediction]
    ) -> dict[str, tuple[int, int, int]]:
        """How often each label is rightly given, given and true; also of those that training never showed."""
        truth, guess = [set(_labels(row)) for row in examples], [set(said["labels"]) for said in predictions]
        pairs = zip(truth, guess, strict=True)
        right = Counter(label for true, said in pairs for label in true & said)
        trues, guesses = (Counter(label for labels in sets for label in labels) for sets in (truth, guess))
        return {label: (right[label], guesses[label], trues[label]) for label in all_labels(self.labels, trues)}

    def blind_guess(self, examples: Sequence[TextRow]) -> tuple[str, Sequence[Prediction]]:
        """The commonest labels, as many of them as do best."""
        common = [label for label, _ in Counter(label for row in examples for label in _labels(row)).most_common()]
        answers = [{"labels": common[:many]} for many in range(1, len(common) + 1)]
        best = max(answers, key=lambda answer: self.score(examples, [answer] * len(examples))["f1"])
        return self.said(best), [best] * len(examples)

    def details(self, examples: Sequence[TextRow], predictions: Sequence[Prediction]) -> Sequence[Detail]:
        """Each label by itself."""
        by_label = self._by_label(examples, predictions)
        known = {label: label if label in self.labels else f"{label} (not in training)" for label in by_label}
        scores = [LabelScores.of(known[label], *counts) for label, counts in by_label.items()]
        columns = ("label", "precision", "recall", "f1", "examples")
        return (Detail(f"by label; {self.rule}", columns, [tuple(one) for one in scores]),)


def _labels(row: TextRow) -> tuple[str, ...]:
    return (row.labels or ()) if isinstance(row, MultiLabelRow) else ()


def _placed(rows: Sequence[TextRow]) -> list[tuple[str, str]]:
    return [(label, row.where) for row in rows for label in _labels(row)]
