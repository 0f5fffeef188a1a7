"""Choosing: which of several endings goes on best, from the state that sums each of them up.

    [CLS] context [SEP] question ending [SEP]
    [CLS] question [SEP] ending [SEP]              where there is no context

What does not fit is cut off at the left, the first side first: the ending stays whole, and of a dialogue its end.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from heedful.data.labelled.choice_rows import read_choices
from heedful.data.labelled.dataset import Choice, Columns, Dataset
from heedful.errors import HeedfulError
from heedful.models.encoder import Encoder
from heedful.models.heads import SequenceClassifier, Summary
from heedful.tasks.label_metrics import accuracy
from heedful.tasks.task import Item, Prediction, Task, Window
from heedful.tasks.text_items import summed_up
from heedful.text.rows import DataSource
from heedful.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Choose(Task[Choice]):
    """Which ending? One example may have more of them than another. The score is the accuracy."""

    name: ClassVar[str] = "choose"
    best: ClassVar[str] = "accuracy"
    layouts: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("context", "choices", "label"),
        ("context", "question", "choices", "label"),
    )
    scores: ClassVar[tuple[str, ...]] = ("accuracy",)

    features: tuple[int, ...] = ()  # layers of a frozen encoder to look at, instead of training it
    pooling: Summary = "cls"  # what sums a text up: a row of the encoder's own, all tokens, or both sides compared

    @property
    def architecture(self) -> str | None:  # type: ignore[override]
        """Hugging Face has such a class for the encoder's own summary of the last layer only."""
        return "MultipleChoice" if self.pooling == "cls" and not self.features else None

    @classmethod
    def read(cls, path: DataSource, columns: Columns, labelled: bool = True) -> Dataset[Choice]:
        """Choices of a JSON-lines file, or of a CSV file as SWAG's; it has no columns to choose."""
        return read_choices(path, labelled)

    @classmethod
    def example(cls, given: Any) -> Choice:
        """A mapping with `choices`, and `context` or `question` or both."""
        if isinstance(given, Choice):
            return given
        if isinstance(given, Mapping):
            context, question = given.get("context", ""), given.get("question", "")
            endings = given.get("choices", given.get("endings"))
            several = isinstance(endings, list | tuple) and len(endings) > 1
            if several and all(isinstance(text, str) for text in (context, question, *endings)):
                return Choice(context, question, tuple(endings))
        what = f"an input of type {type(given).__name__} is not understood"
        raise HeedfulError(
            what, remedy='give {"context": …, "question": …, "choices": […, …]} with two choices or more'
        )

    @classmethod
    def fit(cls, examples: Sequence[Choice], **fields: Any) -> Choose:
        """Nothing is learned from the examples; each must say which ending is right."""
        if not examples:
            raise HeedfulError("there are no examples", remedy="give some with a context, endings and a label")
        task = cls(**fields)
        task.check(examples)
        return task

    def check(self, examples: Sequence[Choice]) -> None:
        """Refuse a label that is not the number of an ending."""
        for example in examples:
            if example.label is None or not 0 <= example.label < len(example.endings):
                raise HeedfulError(
                    f"the label {example.label} is not the number of one of {len(example.endings)} endings",
                    where=example.where or None,
                    remedy=f"number the right ending from 0 to {len(example.endings) - 1}",
                )

    def encode(self, examples: Sequence[Choice], tokenizer: Tokenizer) -> list[Item]:
        """One item an example, with a window for each ending."""
        firsts = tokenizer.pieces([example.context or example.question for example in examples])
        seconds = iter(tokenizer.pieces([text for example in examples for text in _second_sides(example)]))
        items = []
        for number, (example, first) in enumerate(zip(examples, firsts, strict=True)):
            sides = [(first.ids, next(seconds).ids) for _ in example.endings]
            windows = tuple(self._window(*both, tokenizer) for both in sides)
            target = () if example.label is None else (example.label, len(windows))
            cut = any(sum(map(len, both)) + tokenizer.frame.pair.size > self.max_length for both in sides)
            items.append(Item(number, windows, target, cut=cut))
        return items

    def _window(self, first: list[int], second: list[int], tokenizer: Tokenizer) -> Window:
        frame = tokenizer.frame
        room = self.max_length - frame.pair.size
        if room < 1:
            what = f"max_length {self.max_length} leaves no room for text"
            raise HeedfulError(what, remedy=f"use at least {frame.pair.size + 1} tokens, better 128")
        second = second[-room:]
        first = first[max(0, len(first) + len(second) - room) :]
        return summed_up(*frame.joined(first, second), tokenizer)

    def model(self, encoder: Encoder) -> nn.Module:
        """One number for each ending, from what sums it up with what came before."""
        return SequenceClassifier(encoder, 1, self.features, self.pooling)

    def loss(self, model: nn.Module, outputs: Tensor, counts: Sequence[int], targets: Tensor) -> Tensor:
        """Cross-entropy over the endings of each example; its target is the right one and how many there are."""
        right, sizes = targets.long().view(-1, 2).unbind(-1)
        logits = torch.split(outputs.squeeze(-1), sizes.tolist())
        padded = pad_sequence(list(logits), batch_first=True, padding_value=-math.inf)
        return F.cross_entropy(padded, right, reduction="sum")

    def decode(
        self, model: nn.Module, examples: Sequence[Choice], items: Sequence[Item], outputs: Sequence[Sequence[Tensor]]
    ) -> list[Prediction]:
        """The number of the likeliest ending, its text, and the probabilities of all."""
        pairs = zip(examples, outputs, strict=True)
        return [_prediction(example, torch.cat(list(logits)).squeeze(-1)) for example, logits in pairs]

    def said(self, prediction: Prediction) -> str:
        """The text of the ending."""
        return str(prediction["ending"])

    def score(self, examples: Sequence[Choice], predictions: Sequence[Prediction]) -> Mapping[str, float]:
        """Accuracy."""
        truth = [example.label for example in examples]
        return {"accuracy": accuracy(truth, [prediction["label"] for prediction in predictions])}

    def blind_guess(self, examples: Sequence[Choice]) -> tuple[str, Sequence[Prediction]]:
        """The place where the right ending stands most often."""
        ((place, _),) = Counter(example.label for example in examples).most_common(1)
        return f"ending {place}", [{"label": place}] * len(examples)


def _second_sides(example: Choice) -> list[str]:
    before = f"{example.question} " if example.context and example.question else ""
    return [before + ending for ending in example.endings]


def _prediction(example: Choice, logits: Tensor) -> Prediction:
    probabilities: list[float] = logits.softmax(0).tolist()
    label = max(range(len(probabilities)), key=probabilities.__getitem__)
    return {
        "label": label,
        "ending": example.endings[label],
        "probability": probabilities[label],
        "probabilities": probabilities,
    }
