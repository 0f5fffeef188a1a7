"""word2vec: one vector for each word, whatever stands around it. Mikolov et al., 2013.

As an encoder it has no layers: the states of a text are the vectors of its words, to be averaged or read by a head.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from heedful.models.encoder import Encoder, EncoderConfig
from heedful.models.sizes import size_named
from heedful.nn.dropout import Dropout
from heedful.schema import Batch, Encoded


@dataclass(frozen=True)
class Word2VecConfig(EncoderConfig):
    """The shape of a table of vectors."""

    vocab_size: int = 0
    vector_size: int = 100
    dropout: float = 0.0
    model_type: str = "word2vec"
    contextual: ClassVar[bool] = False
    max_length: ClassVar[None] = None
    layers: ClassVar[int] = 0

    @property
    def width(self) -> int:
        """D."""
        return self.vector_size

    def with_dropout(self, dropout: float) -> Word2VecConfig:
        """With this share of the vectors' numbers dropped."""
        return replace(self, dropout=dropout)

    @property
    def described(self) -> str:
        """Only a width."""
        return f"vectors of {self.vector_size} numbers"

    def build(self) -> Word2Vec:
        """The vectors alone."""
        return Word2Vec(self)


SIZES = {"tiny": 50, "mini": 100, "small": 200, "medium": 300, "base": 400, "large": 600}


def sized(size: str, vocab_size: int) -> Word2VecConfig:
    """The config of a named size."""
    return Word2VecConfig(vocab_size=vocab_size, vector_size=size_named(size, SIZES, "word2vec"))


class Word2Vec(Encoder):
    """The vectors of words, as states without context."""

    has_attention = False

    def __init__(self, config: Word2VecConfig) -> None:
        super().__init__()
        self.config: Word2VecConfig = config
        self.embeddings = nn.Embedding(config.vocab_size, config.vector_size)
        self.dropout = Dropout(config.dropout)

    def forward(
        self,
        batch: Batch,
        hidden: Collection[int] = (-1,),
        attention: Collection[int] = (),
        memory: tuple[Tensor, ...] | None = None,
    ) -> Encoded:
        """(N,) ids -> (N, D); the one layer there is, number 0."""
        wanted, _ = self.asked_layers(hidden, attention)
        states = self.dropout(self.embeddings(batch.ids))
        return Encoded(dict.fromkeys(wanted, states), {})

    @property
    def token_matrix(self) -> Tensor:
        """(V, D)."""
        return self.embeddings.weight


class Word2VecForPretraining(nn.Module):
    """The vectors and those of the words they predict, which nobody needs afterwards but to go on.

    Neither has a gradient: its objective moves the few rows that occur by itself.
    """

    def __init__(self, config: Word2VecConfig) -> None:
        super().__init__()
        self.encoder = Word2Vec(config)
        self.output = nn.Embedding(config.vocab_size, config.vector_size)
        self.requires_grad_(False)


def initialise(model: nn.Module, config: Word2VecConfig, seed: int) -> None:
    """As in the original: vectors uniform in ±1 / 2D, outputs zero."""
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, table in model.named_parameters():
            if name.startswith("output."):
                table.zero_()
            else:
                table.uniform_(-0.5 / config.vector_size, 0.5 / config.vector_size, generator=rng)
