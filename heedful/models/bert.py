"""BERT: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers", 2018.

Flat tokens go in and come out (see `heedful.schema`): the linear layers, norms and embeddings see (N, D), and only
attention knows where one sequence ends and the next begins. There is no padding anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.errors import HeedfulError
from heedful.models.encoder import Encoder, EncoderConfig
from heedful.nn.attention import MultiHeadSelfAttention
from heedful.nn.dropout import Dropout
from heedful.nn.packed_linear import PackedLinear
from heedful.nn.positions import sinusoids
from heedful.schema import Batch, Encoded


@dataclass(frozen=True)
class BertConfig(EncoderConfig):
    """The shape of a BERT; the fields have Hugging Face's names, the defaults are BERT-base."""

    model_type: ClassVar[str] = "bert"

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    pad_token_id: int = 0

    def __post_init__(self) -> None:
        if self.hidden_size % self.num_attention_heads:
            raise HeedfulError(
                f"hidden_size {self.hidden_size} is not a multiple of num_attention_heads {self.num_attention_heads}",
                remedy="choose a number of heads that divides the width",
            )
        if self.hidden_act != "gelu":
            raise HeedfulError(
                f"hidden_act {self.hidden_act!r} is not supported",
                remedy="BERT uses 'gelu' (its erf form) and nothing else",
            )

    @property
    def width(self) -> int:
        """D."""
        return self.hidden_size

    @property
    def layers(self) -> int:
        """L."""
        return self.num_hidden_layers

    @property
    def max_length(self) -> int:
        """One position a token."""
        return self.max_position_embeddings

    @property
    def segments(self) -> int:
        """Two, for the two sides of a pair, unless there is no second side."""
        return self.type_vocab_size

    @property
    def dropout(self) -> float:
        """That of hidden states."""
        return self.hidden_dropout_prob

    def with_dropout(self, dropout: float) -> BertConfig:
        """The same share of hidden states and of attention weights."""
        return replace(self, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout)

    @property
    def described(self) -> str:
        """With its heads."""
        return f"{super().described}, {self.num_attention_heads} heads"

    def build(self) -> Bert:
        """With a pooler."""
        return Bert(self)


# Layers, width, heads; the feed-forward is four times the width and a head 64 wide.
SIZES = {
    "tiny": (2, 128, 2),
    "mini": (4, 256, 4),
    "small": (4, 512, 8),
    "medium": (8, 512, 8),
    "base": (12, 768, 12),
    "large": (24, 1024, 16),
}


def sized(size: str, vocab_size: int) -> BertConfig:
    """The config of a published size: tiny, mini, small, medium, base or large."""
    if size not in SIZES:
        raise HeedfulError(f"no BERT size is called {size!r}", remedy=f"choose one of {', '.join(SIZES)}")
    layers, width, heads = SIZES[size]
    return BertConfig(
        vocab_size=vocab_size,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
    )


class BertEmbeddings(nn.Module):
    """token + segment + position, then LayerNorm and dropout."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.token = nn.Embedding(config.vocab_size, config.hidden_size)
        self.segment = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.position = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, batch: Batch) -> Tensor:
        """(N,) ids, segments and positions -> (N, D)."""
        total = self.token(batch.ids) + self.segment(batch.segments) + self.position(batch.positions)
        return self.dropout(self.norm(total))  # type: ignore[no-any-return]


class BertLayer(nn.Module):
    """Self-attention and a feed-forward with GELU (erf form), each followed by residual + LayerNorm."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        width, inner = config.hidden_size, config.intermediate_size
        self.attention = MultiHeadSelfAttention(width, config.num_attention_heads, config.attention_probs_dropout_prob)
        self.attention_norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.up = nn.Linear(width, inner)
        self.activation: nn.Module = nn.GELU()
        self.down = nn.Linear(inner, width)
        self.output_norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = Dropout(config.hidden_dropout_prob)

    def forward(self, x: Tensor, batch: Batch, rows: Tensor | None = None) -> Tensor:
        """(N, D) -> (N, D); with `rows` (M,), only the output of these flat rows, (M, D)."""
        attended = self.attention(x, batch.groups, rows)
        x = self.attention_norm((x if rows is None else x[rows]) + self.dropout(attended))
        x = self.output_norm(x + self.dropout(self.down(self.activation(self.up(x)))))
        return x


class Bert(Encoder):
    """The encoder, which ignores memory: every batch stands for itself."""

    def __init__(self, config: BertConfig, pooler: bool = True) -> None:
        super().__init__()
        self.config: BertConfig = config
        self.embeddings = BertEmbeddings(config)
        self.layers = nn.ModuleList(BertLayer(config) for _ in range(config.num_hidden_layers))
        self.pooler = nn.Linear(config.hidden_size, config.hidden_size) if pooler else None

    def forward(
        self,
        batch: Batch,
        hidden: Collection[int] = (-1,),
        attention: Collection[int] = (),
        memory: tuple[Tensor, ...] | None = None,
    ) -> Encoded:
        """The states and maps asked for."""
        wanted, maps = self.asked_layers(hidden, attention)
        states: dict[int, Tensor] = {}
        weights: dict[int, tuple[Tensor, ...]] = {}
        x = self.embeddings(batch)
        if 0 in wanted:
            states[0] = x
        for number, layer in enumerate(self.layers[: max(wanted | maps, default=0)], start=1):
            assert isinstance(layer, BertLayer)
            if number in maps:
                weights[number] = layer.attention.weights(x, batch.groups)
            x = layer(x, batch)
            if number in wanted:
                states[number] = x
        return Encoded(states, weights)

    def states_at(self, batch: Batch, rows: Tensor) -> Tensor:
        """The last layer's states at some flat rows only, (M, D); past attention, that layer computes nothing else.

        Enough for heads that look at [CLS] or at the masked tokens, and a good part of the work is saved.
        """
        x = self.embeddings(batch)
        for layer in self.layers[:-1]:
            x = layer(x, batch)
        return self.layers[-1](x, batch, rows)  # type: ignore[no-any-return]

    @property
    def token_matrix(self) -> Tensor:
        """(V, D)."""
        return self.embeddings.token.weight

    def pack(self) -> None:
        """Make this encoder faster on a CPU, for inference only: it can no longer be trained, saved or moved."""
        for layer in self.layers:
            assert isinstance(layer, BertLayer)
            for owner, name in ((layer.attention, "qkv"), (layer.attention, "out"), (layer, "up"), (layer, "down")):
                setattr(owner, name, PackedLinear(getattr(owner, name), gelu=name == "up"))
            layer.activation = nn.Identity()  # the packed product has applied it

    def pool(self, summary: Tensor) -> Tensor:
        """tanh(W h + b) of the [CLS] states of the last layer, (B, D) -> (B, D)."""
        if self.pooler is None:
            raise HeedfulError(
                "this model has no pooler", remedy="use mean pooling, or a folder whose weights hold a pooler"
            )
        return torch.tanh(self.pooler(summary))

    def without_pooler(self) -> Bert:
        """Hugging Face's classes have none either where nothing looks at it."""
        self.pooler = None
        return self


class MlmHead(nn.Module):
    """dense + GELU + LayerNorm + the token embedding's matrix + a bias: logits over the vocabulary."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, states: Tensor, matrix: Tensor) -> Tensor:
        """States of the positions to predict (M, D) and the tied matrix (V, D) -> logits (M, V)."""
        return F.linear(self.norm(F.gelu(self.dense(states))), matrix, self.bias)


class BertForPretraining(nn.Module):
    """BERT with both of its pretraining heads."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.encoder = Bert(config)
        self.mlm = MlmHead(config)
        self.nsp = nn.Linear(config.hidden_size, 2)

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        return self.nsp.weight.device

    def mlm_logits(self, states: Tensor) -> Tensor:
        """Logits over the vocabulary at the given states of the last layer, (M, D) -> (M, V)."""
        return self.mlm(states, self.encoder.token_matrix)  # type: ignore[no-any-return]

    def nsp_logits(self, first: Tensor) -> Tensor:
        """(B, D) [CLS] states of the last layer -> (B, 2); 0 means "B follows A", as Hugging Face stores it."""
        return self.nsp(self.encoder.pool(first))  # type: ignore[no-any-return]


def initialise(model: nn.Module, config: BertConfig, seed: int) -> None:
    """BERT's own start: normal weights of the configured spread, zero biases, norms at one; the same for one seed.

    Only positions start otherwise: as the Transformer's sinusoids, of the same spread. From there neighbours are easy
    to find, which random positions have to learn first, and they are trained like all the rest.
    """
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                module.weight.normal_(0.0, config.initializer_range, generator=rng)
            if isinstance(module, nn.Linear):
                module.bias.zero_()
            if isinstance(module, nn.LayerNorm):
                module.weight.fill_(1.0)
                module.bias.zero_()
            if isinstance(module, MlmHead):
                module.bias.zero_()
        for table in [module.position.weight for module in model.modules() if isinstance(module, BertEmbeddings)]:
            table.copy_(sinusoids(*table.shape) * config.initializer_range * math.sqrt(2))  # their own spread is √½
