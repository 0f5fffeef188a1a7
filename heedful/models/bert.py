"""BERT: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers", 2018."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar

import torch
from torch import Tensor, nn

from heedful.models.bert_layers import BertEmbeddings, BertShape, BertStack, ForMaskedLm, MlmHead
from heedful.models.sizes import TRANSFORMER_SIZES, size_named
from heedful.nn.positions import sinusoids

C = TypeVar("C", bound=BertShape)


@dataclass(frozen=True)
class BertConfig(BertShape):
    """The shape of a BERT."""

    model_type: ClassVar[str] = "bert"

    type_vocab_size: int = 2

    @property
    def segment_rows(self) -> int:
        """One a segment."""
        return self.type_vocab_size

    @property
    def segments(self) -> int | None:
        """Two, for the two sides of a pair, unless there is no second side."""
        return self.type_vocab_size

    def build(self) -> BertStack:
        """With a pooler."""
        return Bert(self)


def sized(size: str, vocab_size: int) -> BertConfig:
    """The config of a published size: tiny, mini, small, medium, base or large."""
    return sized_as(BertConfig, size, vocab_size)


def sized_as(kind: type[C], size: str, vocab_size: int, **others: Any) -> C:
    """A config of another kind with the layers, width and heads of a BERT of this size, and `others` of its fields."""
    layers, width, heads = size_named(size, TRANSFORMER_SIZES, "BERT")
    return kind(
        vocab_size=vocab_size,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        **others,
    )


class Bert(BertStack):
    """The encoder."""


class BertForPretraining(ForMaskedLm):
    """BERT, or a model built as it is, with both of its pretraining heads."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config.build(), MlmHead(config))
        self.nsp = nn.Linear(config.hidden_size, 2)

    def nsp_logits(self, first: Tensor) -> Tensor:
        """(B, D) [CLS] states of the last layer -> (B, 2); 0 means "B follows A", as Hugging Face stores it."""
        return self.nsp(self.encoder.pool(first))  # type: ignore[no-any-return]


class Initialised(Protocol):
    """A config that says how far the random weights are spread."""

    @property
    def initializer_range(self) -> float: ...


def initialise(model: nn.Module, config: Initialised, seed: int) -> None:
    """BERT's own start: normal weights of the configured spread, zero biases, norms at one; the same for one seed.

    Only positions start otherwise: as the Transformer's sinusoids, of the same spread. From there neighbours are easy
    to find, which random positions have to learn first, and they are trained like all the rest.
    """
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                module.weight.normal_(0.0, config.initializer_range, generator=rng)
            if isinstance(module, nn.LayerNorm):
                module.weight.fill_(1.0)
            bias = getattr(module, "bias", None)
            if isinstance(bias, nn.Parameter):  # of linear layers, norms and MLM heads, where they have one
                bias.zero_()
        for table in [module.position.weight for module in model.modules() if isinstance(module, BertEmbeddings)]:
            table.copy_(sinusoids(*table.shape) * config.initializer_range * math.sqrt(2))  # their own spread is √½
