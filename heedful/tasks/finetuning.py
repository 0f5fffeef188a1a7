"""Fine-tuning: a task as a training objective, and a task's model as something that answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from heedful.models.encoder import Encoder
from heedful.models.heads import Summary, states
from heedful.schema import Selection
from heedful.tasks.items import ItemMicroBatch, JointMicroBatch, Mapper, outputs_of
from heedful.tasks.task import Item, Prediction, Task
from heedful.text.tokenizer import Tokenizer

E = TypeVar("E")


class TaskObjective:
    """What a trainer minimises: a task's loss, summed over a micro-batch."""

    def __init__(self, task: Task[Any]) -> None:
        self.task = task

    def __call__(self, model: nn.Module, micro_batch: Any) -> Mapping[str, Tensor]:
        """The loss of a micro-batch of items, under the micro-batch's name for it."""
        if isinstance(micro_batch, JointMicroBatch):
            return self._joint(model, micro_batch.parts)
        assert isinstance(micro_batch, ItemMicroBatch)
        outputs = model(micro_batch.selection).float()  # a loss is added up in float32, whatever the products are in
        loss = self.task.loss(model, outputs, micro_batch.selection.counts, micro_batch.targets)
        return {micro_batch.name: loss}

    def _joint(self, model: nn.Module, parts: Sequence[ItemMicroBatch]) -> Mapping[str, Tensor]:
        """The loss over all parts together; of each only the outputs are kept, and the rest is computed again.

        That is gradient caching: the loss and its gradients are those of the whole batch, the memory is that of a part.
        """
        if len(parts) == 1:
            return self(model, parts[0])
        outputs = torch.cat([checkpoint(model, part.selection, use_reentrant=False) for part in parts]).float()
        counts = [count for part in parts for count in part.selection.counts]
        loss = self.task.loss(model, outputs, counts, torch.cat([part.targets for part in parts]))
        return {parts[0].name: loss}


def predict(
    task: Task[E], model: nn.Module, examples: Sequence[E], tokenizer: Tokenizer, mapper: Mapper = map
) -> list[Prediction]:
    """What the model says of each example; where it has not seen all of one, `cut` says so, and `empty` of no text."""
    items = task.encode(examples, tokenizer)
    return predictions_of(task, model, examples, items, outputs_of(model, items, mapper))


def predictions_of(
    task: Task[E], model: nn.Module, examples: Sequence[E], items: Sequence[Item], outputs: Sequence[Sequence[Tensor]]
) -> list[Prediction]:
    """What is said of each example, from the outputs of its items."""
    predictions = task.decode(model, examples, items, outputs)
    for number in {item.example for item in items if item.cut}:
        predictions[number]["cut"] = True
    for example, prediction in zip(examples, predictions, strict=True):
        if getattr(example, "empty", False):  # the examples of another's task may not know
            prediction["empty"] = True
    return predictions


class _Features(nn.Module):
    """A frozen encoder alone, as a model whose outputs are its states."""

    def __init__(self, encoder: Encoder, layers: tuple[int, ...], combine: str, pooling: Summary) -> None:
        super().__init__()
        self.encoder, self.layers, self.combine, self.pooling = encoder, layers, combine, pooling

    def forward(self, selection: Selection) -> Tensor:
        return states(self.encoder, selection, self.layers, self.combine, self.pooling)


def frozen_features(
    encoder: Encoder,
    layers: tuple[int, ...],
    combine: str,
    pooling: Summary,
    items: Sequence[Item],
    mapper: Mapper = map,
) -> list[list[Tensor]]:
    """The states that a frozen encoder has for the rows of each window of each item, computed once for all epochs."""
    return outputs_of(_Features(encoder, layers, combine, pooling).eval(), items, mapper)
