"""ELECTRA: Clark et al., "ELECTRA: Pre-training Text Encoders as Discriminators Rather Than Generators", 2020.

BERT behind embeddings that may be narrower than its layers. Two are trained together: the generator guesses masked
words, and the discriminator, which is the one to use, tells for each token whether it was put there by the generator.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from torch import Tensor, nn

from heedful.models.bert import BertConfig, sized_as
from heedful.models.bert_layers import BertStack, ForMaskedLm, MlmHead
from heedful.nn.activations import activation


@dataclass(frozen=True)
class ElectraConfig(BertConfig):
    """The shape of an ELECTRA, generator or discriminator; the defaults are the small discriminator."""

    model_type: ClassVar[str] = "electra"

    embedding_size: int = 128
    hidden_size: int = 256
    num_attention_heads: int = 4
    intermediate_size: int = 1024

    @property
    def embedding_width(self) -> int:
        """Often half or a third of D."""
        return self.embedding_size

    def build(self) -> BertStack:
        """With what stands before a classifier, which only fine-tuned folders have."""
        return Electra(self)


def sized(size: str, vocab_size: int) -> ElectraConfig:
    """The config with the layers, width and heads of a BERT of this size, and embeddings as wide."""
    config = sized_as(ElectraConfig, size, vocab_size)
    return replace(config, embedding_size=config.hidden_size)


class Electra(BertStack):
    """The encoder."""

    pooler_activation: ClassVar[str] = "gelu"


class ReplacedTokenHead(nn.Module):
    """The discriminator's: dense + activation + one number; above zero, a token was replaced."""

    def __init__(self, config: ElectraConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.activation = activation(config.hidden_act)
        self.out = nn.Linear(config.hidden_size, 1)

    def forward(self, states: Tensor) -> Tensor:
        """(M, D) -> (M,)."""
        return self.out(self.activation(self.dense(states))).squeeze(-1)  # type: ignore[no-any-return]


def mlm_head(config: ElectraConfig) -> MlmHead:
    """The generator's, whose activation is always GELU."""
    return MlmHead(config, "gelu")


def masked_lm(config: ElectraConfig) -> ForMaskedLm:
    """The generator."""
    return ForMaskedLm(config.build().without_pooler(), mlm_head(config))
