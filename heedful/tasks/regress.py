"""Regression: a number for a text or a pair of texts, from the state that sums it up."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from heedful.data.labelled.dataset import Columns, Dataset, TextRow
from heedful.data.oddities import Oddities
from heedful.errors import HeedfulError
from heedful.models.encoder import Encoder
from heedful.tasks.label_metrics import pearson, spearman
from heedful.tasks.task import Item, Prediction
from heedful.tasks.text_items import TextTask, mean_outputs
from heedful.text.rows import DataSource
from heedful.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Regress(TextTask):
    """How much? The scores are Pearson's and Spearman's correlation and the mean squared error."""

    name: ClassVar[str] = "regress"
    best: ClassVar[str] = "spearman"
    scores: ClassVar[tuple[str, ...]] = ("pearson", "spearman", "squared_error")
    errors: ClassVar[tuple[str, ...]] = ("squared_error",)

    @classmethod
    def read(cls, path: DataSource, columns: Columns, labelled: bool = True) -> Dataset[TextRow]:
        """Rows of a table or JSON-lines file; one whose label is no number is a bad one."""
        found = super().read(path, columns, labelled)
        numbers = Oddities(patient=True)
        rows = list(numbers.each(found.examples, _with_number)) if labelled else found.examples
        return replace(found, examples=rows, bad=(*found.bad, *numbers.bad))

    @classmethod
    def fit(cls, examples: Sequence[TextRow], **fields: Any) -> Regress:
        """Nothing is learned from the rows; each must hold a number."""
        task = cls(**fields)
        task.check(examples)
        return task

    def check(self, examples: Sequence[TextRow]) -> None:
        """Refuse what is not a number."""
        for row in examples:
            _number(row)

    def encode(self, examples: Sequence[TextRow], tokenizer: Tokenizer) -> list[Item]:
        """One item a row, or with a stride one for each window."""
        return self.items(examples, tokenizer, lambda row: () if row.label is None else (_number(row),))

    def model(self, encoder: Encoder) -> nn.Module:
        """One number from what sums the text up."""
        return self.classifier(encoder, 1)

    def loss(self, model: nn.Module, outputs: Tensor, counts: Sequence[int], targets: Tensor) -> Tensor:
        """Squared error."""
        return F.mse_loss(outputs.squeeze(-1), targets.float(), reduction="sum")

    def decode(
        self, model: nn.Module, examples: Sequence[TextRow], items: Sequence[Item], outputs: Sequence[Sequence[Tensor]]
    ) -> list[Prediction]:
        """The number, averaged over several windows."""
        if not examples:
            return []
        return [{"value": value} for (value,) in mean_outputs(len(examples), items, outputs).tolist()]

    def said(self, prediction: Prediction) -> str:
        """The number."""
        return f"{prediction['value']:.4g}"

    def score(self, examples: Sequence[TextRow], predictions: Sequence[Prediction]) -> Mapping[str, float]:
        """Both correlations, and the mean squared error."""
        truth = [_number(row) for row in examples]
        guess = [float(prediction["value"]) for prediction in predictions]
        error = sum((a - b) ** 2 for a, b in zip(truth, guess, strict=True)) / len(truth)
        return {"pearson": pearson(truth, guess), "spearman": spearman(truth, guess), "squared_error": error}

    def blind_guess(self, examples: Sequence[TextRow]) -> tuple[str, Sequence[Prediction]]:
        """The mean."""
        mean = sum(map(_number, examples)) / len(examples)
        return f"the mean, {mean:.4g}", [{"value": mean}] * len(examples)


def _with_number(row: TextRow) -> TextRow:
    _number(row)
    return row


def _number(row: TextRow) -> float:
    try:
        value = float(str(row.label))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise HeedfulError(
            f"{row.label!r} is not a number", where=row.where or None, remedy="regression needs a number in each row"
        )
    return value
