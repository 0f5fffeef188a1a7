"""DistilBERT: Sanh et al., "DistilBERT, a distilled version of BERT", 2019: BERT without segments, and half as deep."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from heedful.models.bert import BertConfig, sized_as
from heedful.models.bert_layers import BertStack, ForMaskedLm, MlmHead
from heedful.models.encoder import EncoderConfig


@dataclass(frozen=True)
class DistilBertConfig(EncoderConfig):
    """The shape of a DistilBERT, whose fields have names of their own."""

    model_type: ClassVar[str] = "distilbert"

    vocab_size: int = 30522
    max_position_embeddings: int = 512
    n_layers: int = 6
    n_heads: int = 12
    dim: int = 768
    hidden_dim: int = 3072
    dropout: float = 0.1
    attention_dropout: float = 0.1
    activation: str = "gelu"
    initializer_range: float = 0.02
    pad_token_id: int = 0

    def __post_init__(self) -> None:
        self.in_berts_words()  # which checks itself

    def in_berts_words(self) -> BertConfig:
        """The same shape as BERT would say it."""
        return BertConfig(
            vocab_size=self.vocab_size,
            hidden_size=self.dim,
            num_hidden_layers=self.n_layers,
            num_attention_heads=self.n_heads,
            intermediate_size=self.hidden_dim,
            hidden_act=self.activation,
            hidden_dropout_prob=self.dropout,
            attention_probs_dropout_prob=self.attention_dropout,
            max_position_embeddings=self.max_position_embeddings,
            type_vocab_size=0,
        )

    @property
    def width(self) -> int:
        """D."""
        return self.dim

    @property
    def layers(self) -> int:
        """L."""
        return self.n_layers

    @property
    def max_length(self) -> int:
        """One position a token."""
        return self.max_position_embeddings

    @property
    def described(self) -> str:
        """With its heads."""
        return self.in_berts_words().described

    def with_dropout(self, dropout: float) -> DistilBertConfig:
        """The same share of hidden states and of attention weights."""
        return replace(self, dropout=dropout, attention_dropout=dropout)

    def build(self) -> DistilBert:
        """With what stands before a classifier, which only fine-tuned folders have."""
        return DistilBert(self)


def sized(size: str, vocab_size: int) -> DistilBertConfig:
    """The config with the layers, width and heads of a BERT of this size."""
    bert = sized_as(BertConfig, size, vocab_size)
    return DistilBertConfig(
        vocab_size,
        n_layers=bert.num_hidden_layers,
        n_heads=bert.num_attention_heads,
        dim=bert.hidden_size,
        hidden_dim=bert.intermediate_size,
    )


class DistilBert(BertStack):
    """The encoder."""

    pooler_activation: ClassVar[str] = "relu"

    def __init__(self, config: DistilBertConfig, pooler: bool = True) -> None:
        super().__init__(config.in_berts_words(), pooler)
        self.config = config


def mlm_head(config: DistilBertConfig) -> MlmHead:
    """Its MLM head."""
    return MlmHead(config.in_berts_words())


def masked_lm(config: DistilBertConfig) -> ForMaskedLm:
    """The model for pretraining: no pairs, so no pooler."""
    return ForMaskedLm(config.build().without_pooler(), mlm_head(config))
