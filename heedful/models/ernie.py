"""ERNIE: Sun et al., "ERNIE 2.0: A Continual Pre-training Framework for Language Understanding", 2020.

BERT with one more embedding, that of the task that a text is read for. Vectors and heads are for task 0, as in Hugging
Face's classes if they are not told another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from heedful.models.bert import BertConfig
from heedful.models.bert_layers import BertEmbeddings, BertShape, BertStack
from heedful.schema import Batch


@dataclass(frozen=True)
class ErnieConfig(BertConfig):
    """The shape of an ERNIE."""

    model_type: ClassVar[str] = "ernie"

    task_type_vocab_size: int = 3
    use_task_id: bool = False

    def build(self) -> BertStack:
        """With a pooler."""
        return Ernie(self)


class ErnieEmbeddings(BertEmbeddings):
    """token + segment + position + task."""

    def __init__(self, config: ErnieConfig) -> None:
        super().__init__(config)
        self.task = nn.Embedding(config.task_type_vocab_size, config.hidden_size) if config.use_task_id else None

    def total(self, batch: Batch) -> Tensor:
        """With the vector of task 0."""
        total = super().total(batch)
        return total if self.task is None else total + self.task.weight[0]


class Ernie(BertStack):
    """The encoder."""

    def embeddings_of(self, config: BertShape) -> ErnieEmbeddings:
        """Those with a task."""
        assert isinstance(config, ErnieConfig)
        return ErnieEmbeddings(config)
