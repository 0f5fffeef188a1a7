"""Classification: one of several labels for a text or a pair of texts, from the state that sums it up."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.data.labelled.dataset import Remark, TextRow
from heedful.errors import HeedfulError
from heedful.models.encoder import Encoder
from heedful.tasks.label_metrics import accuracy, f1, macro_f1, matthews, per_label
from heedful.tasks.task import Detail, Item, Prediction
from heedful.tasks.text_items import TextTask, mean_outputs
from heedful.tasks.thresholds import best_threshold
from heedful.tasks.unseen import all_labels, confusion_table, refuse_strangers, unseen_labels
from heedful.text.tokenizer import Tokenizer

# More labels than this and than half of the rows are no labels.
MANY_LABELS = 20


@dataclass(frozen=True)
class Classify(TextTask):
    """Which label? The scores are accuracy, F1 (of the last of two labels, else the mean over labels) and Matthews."""

    name: ClassVar[str] = "classify"
    best: ClassVar[str] = "accuracy"
    scores: ClassVar[tuple[str, ...]] = ("accuracy", "f1", "matthews")

    labels: tuple[str, ...] = ()
    balance: bool = False
    weights: tuple[float, ...] = ()  # how much a row of each label counts
    decide_by: Literal["accuracy", "f1", "matthews"] | None = None  # the threshold is where this is best on dev
    threshold: float = 0.5  # of two labels, the second is given from this probability on

    @classmethod
    def fit(cls, examples: Sequence[TextRow], **fields: Any) -> Classify:
        """The labels that occur, sorted: numbers by size, everything else by spelling."""
        labels = sorted({str(row.label) for row in examples}, key=label_order)
        if len(labels) < 2:
            raise HeedfulError(
                f"there is only the label {labels[0]!r}" if labels else "there are no rows",
                where=examples[0].where if examples else None,
                remedy="give rows of at least two labels",
            )
        if len(labels) > max(MANY_LABELS, len(examples) / 2):
            raise HeedfulError(
                f"{len(labels):,} different labels in {len(examples):,} rows, of which most occur once",
                where=examples[0].where,
                remedy="name the column of the labels with `label`; for numbers there is `regress`",
            )
        task = cls(labels=tuple(labels), **fields)
        if task.decide_by and len(labels) > 2:
            what = f"`decide_by` is for two labels, and there are {len(labels)}"
            raise HeedfulError(what, remedy="leave it out: the likeliest label is given")
        return replace(task, weights=_balanced(labels, examples)) if task.balance else task

    def check(self, examples: Sequence[TextRow]) -> None:
        """Refuse a row without a label, and rows that have nothing in common with the training data."""
        for row in examples:
            if row.label is None:
                raise HeedfulError("the row has no label", where=row.where or None, remedy="give each row a label")
        refuse_strangers([(str(row.label), row.where) for row in examples], self.labels)

    def unseen(self, examples: Sequence[TextRow]) -> tuple[Remark, ...]:
        """Rows whose label training never showed: no answer to them is right."""
        return unseen_labels(((str(row.label), row.where) for row in examples), self.labels, "label")

    def encode(self, examples: Sequence[TextRow], tokenizer: Tokenizer) -> list[Item]:
        """One item a row, or with a stride one for each window."""
        numbers = {label: (float(number),) for number, label in enumerate(self.labels)}
        return self.items(examples, tokenizer, lambda row: numbers.get(str(row.label), ()))

    def model(self, encoder: Encoder) -> nn.Module:
        """A logit for each label from what sums the text up."""
        return self.classifier(encoder, len(self.labels))

    def loss(self, model: nn.Module, outputs: Tensor, counts: Sequence[int], targets: Tensor) -> Tensor:
        """Cross-entropy, in which rarer labels may count more."""
        weights = outputs.new_tensor(self.weights) if self.weights else None
        return F.cross_entropy(outputs, targets.long(), weights, reduction="sum")

    def decode(
        self, model: nn.Module, examples: Sequence[TextRow], items: Sequence[Item], outputs: Sequence[Sequence[Tensor]]
    ) -> list[Prediction]:
        """The likeliest label, or of two the second from the threshold on, and the probabilities of all.

        The logits of several windows are averaged.
        """
        if not examples:
            return []
        shares = mean_outputs(len(examples), items, outputs).softmax(-1).tolist()
        return [self._prediction(dict(zip(self.labels, row, strict=True))) for row in shares]

    def _prediction(self, probabilities: dict[str, float]) -> Prediction:
        label = max(probabilities, key=probabilities.__getitem__)
        if self.decide_by:
            label = self.labels[probabilities[self.labels[1]] >= self.threshold]
        return {"label": label, "probability": probabilities[label], "probabilities": probabilities}

    def tuned(self, examples: Sequence[TextRow], predictions: Sequence[Prediction]) -> Classify:
        """With `decide_by`, the task with the threshold that gives these predictions the best such score."""
        if self.decide_by is None:
            return self
        shares = np.array([said["probabilities"][self.labels[1]] for said in predictions])
        truth = np.array([str(row.label) == self.labels[1] for row in examples])
        return replace(self, threshold=best_threshold(shares, truth, self.decide_by))

    @property
    def rule(self) -> str:
        """With `decide_by`, the threshold of the second label."""
        return f"{self.labels[1]!r} is given from a probability of {self.threshold:.3g} on" if self.decide_by else ""

    def said(self, prediction: Prediction) -> str:
        """The label."""
        return str(prediction["label"])

    def score(self, examples: Sequence[TextRow], predictions: Sequence[Prediction]) -> Mapping[str, float]:
        """Accuracy, F1 and Matthews."""
        truth = [str(row.label) for row in examples]
        guess = [str(prediction["label"]) for prediction in predictions]
        two = len(self.labels) == 2
        return {
            "accuracy": accuracy(truth, guess),
            "f1": f1(truth, guess, self.labels[1]) if two else macro_f1(truth, guess, all_labels(self.labels, truth)),
            "matthews": matthews(truth, guess),
        }

    def blind_guess(self, examples: Sequence[TextRow]) -> tuple[str, Sequence[Prediction]]:
        """The commonest label."""
        ((label, _),) = Counter(str(row.label) for row in examples).most_common(1)
        return repr(label), [{"label": label}] * len(examples)

    def details(self, examples: Sequence[TextRow], predictions: Sequence[Prediction]) -> Sequence[Detail]:
        """Which labels are taken for which others, and each label by itself."""
        truth = [str(row.label) for row in examples]
        guess = [str(prediction["label"]) for prediction in predictions]
        every = all_labels(self.labels, truth)
        return (
            confusion_table(truth, guess, self.labels, "label"),
            Detail(
                f"by label; {self.rule}" if self.rule else "by label",
                ("label", "precision", "recall", "f1", "examples"),
                [tuple(scores) for scores in per_label(truth, guess, every)],
            ),
        )


def _balanced(labels: Sequence[str], rows: Sequence[TextRow]) -> tuple[float, ...]:
    """Weights by which every label counts alike, n / (K·n_k): their mean over the rows is 1."""
    counts = Counter(str(row.label) for row in rows)
    return tuple(len(rows) / (len(labels) * counts[label]) for label in labels)


def label_order(label: str) -> tuple[bool, float, str]:
    """What labels are sorted by: numbers by size, and after them everything else by spelling."""
    try:
        number = float(label)
    except ValueError:
        number = math.nan
    # "nan" and "inf" are words here: the one has no place among numbers, and "infinity" equals the other.
    return (False, number, label) if math.isfinite(number) else (True, 0.0, label)
