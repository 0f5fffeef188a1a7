"""MPNet: Song et al., "MPNet: Masked and Permuted Pre-training for Language Understanding", 2020.

BERT without segments, whose attention also has a number for each head and distance, the same in all layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from heedful.models.bert_layers import BertShape, BertStack, ForMaskedLm, MlmHead
from heedful.nn.attention import Places
from heedful.nn.positions import distance_buckets
from heedful.schema import Batch

BUCKETS = 32


@dataclass(frozen=True)
class MPNetConfig(BertShape):
    """The shape of an MPNet."""

    model_type: ClassVar[str] = "mpnet"

    vocab_size: int = 30527
    pad_token_id: int = 1

    @property
    def first_position(self) -> int:
        """Behind the padding's, which is always 1."""
        return 2

    def build(self) -> BertStack:
        """With a pooler."""
        return MPNet(self)


class MPNet(BertStack):
    """The encoder."""

    def __init__(self, config: MPNetConfig, pooler: bool = True) -> None:
        super().__init__(config, pooler)
        self.distance = nn.Embedding(BUCKETS, config.num_attention_heads)

    def places(self, batch: Batch) -> Sequence[Sequence[Places] | None]:
        """Numbers that are added to the scores, (H, T, T) for each group, the same in all layers."""
        table = self.distance.weight
        buckets = (distance_buckets(group.length, BUCKETS).to(table.device) for group in batch.groups)
        return [[Places(table[numbers].permute(2, 0, 1)) for numbers in buckets]] * self.layer_count

    def depth(self, parameter: str) -> int:
        """What all layers share lies below them."""
        return 0 if parameter.startswith("distance.") else super().depth(parameter)


def mlm_head(config: MPNetConfig) -> MlmHead:
    """Its MLM head, whose activation is always GELU."""
    return MlmHead(config, "gelu")


def masked_lm(config: MPNetConfig) -> ForMaskedLm:
    """The model for pretraining, by masked words alone."""
    return ForMaskedLm(config.build().without_pooler(), mlm_head(config))
