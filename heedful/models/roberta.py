"""RoBERTa: Liu et al., "RoBERTa: A Robustly Optimized BERT Pretraining Approach", 2019; and XLM-R, its sibling.

BERT without segments, whose positions begin behind the padding's: Conneau et al., "Unsupervised Cross-lingual
Representation Learning at Scale", 2020, is the same in a hundred languages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from heedful.models.bert import BertConfig
from heedful.models.bert_layers import BertStack, ForMaskedLm, MlmHead


@dataclass(frozen=True)
class RobertaConfig(BertConfig):
    """The shape of a RoBERTa."""

    model_type: ClassVar[str] = "roberta"

    vocab_size: int = 50265
    pad_token_id: int = 1

    @property
    def first_position(self) -> int:
        """Places are counted from the one that padding has."""
        return self.pad_token_id + 1

    @property
    def segments(self) -> None:
        """Its tokenizers tell no segments apart; all tokens have the first row of that table."""
        return

    def build(self) -> BertStack:
        """With a pooler."""
        return Roberta(self)


@dataclass(frozen=True)
class XlmRobertaConfig(RobertaConfig):
    """The shape of an XLM-R."""

    model_type: ClassVar[str] = "xlm-roberta"

    vocab_size: int = 30522


class Roberta(BertStack):
    """The encoder."""


def mlm_head(config: RobertaConfig) -> MlmHead:
    """Its MLM head, whose activation is always GELU."""
    return MlmHead(config, "gelu")


def masked_lm(config: RobertaConfig) -> ForMaskedLm:
    """The model for pretraining: no pairs, so no pooler."""
    return ForMaskedLm(config.build().without_pooler(), mlm_head(config))
