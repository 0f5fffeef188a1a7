"""ModernBERT: Warner et al., "Smarter, Better, Faster, Longer: A Modern Bidirectional Encoder", 2024.

Pre-norm layers almost without biases, rotary positions, a gated feed-forward (GeGLU), and long texts: every third layer
looks at all of a text, the others only at a window around each token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.errors import HeedfulError
from heedful.models.bert_layers import BertStack, ForMaskedLm, TokenEmbeddings, check_heads
from heedful.models.encoder import Encoder, EncoderConfig
from heedful.nn.activations import activation, check_activation
from heedful.nn.attention import MultiHeadSelfAttention, Places
from heedful.nn.dropout import Dropout
from heedful.nn.packed_linear import packed
from heedful.nn.pooling import pool
from heedful.nn.positions import Rotation, window
from heedful.schema import Batch, Selection


@dataclass(frozen=True)
class ModernBertConfig(EncoderConfig):
    """The shape of a ModernBERT; the defaults are its base size."""

    model_type: ClassVar[str] = "modernbert"

    vocab_size: int = 50368
    hidden_size: int = 768
    intermediate_size: int = 1152
    num_hidden_layers: int = 22
    num_attention_heads: int = 12
    hidden_activation: str = "gelu"
    max_position_embeddings: int = 8192
    initializer_range: float = 0.02
    norm_eps: float = 1e-5
    norm_bias: bool = False
    attention_bias: bool = False
    attention_dropout: float = 0.0
    global_attn_every_n_layers: int = 3
    global_rope_theta: float = 160_000.0
    local_attention: int = 128  # how many tokens a window holds
    local_rope_theta: float = 10_000.0
    embedding_dropout: float = 0.0
    mlp_bias: bool = False
    mlp_dropout: float = 0.0
    classifier_pooling: str = "cls"  # or mean
    classifier_dropout: float = 0.0
    classifier_bias: bool = False
    classifier_activation: str = "gelu"
    pad_token_id: int = 50283

    def __post_init__(self) -> None:
        check_heads(self.hidden_size, self.num_attention_heads)
        check_activation("hidden_activation", self.hidden_activation)
        check_activation("classifier_activation", self.classifier_activation)
        if self.classifier_pooling not in ("cls", "mean"):
            raise HeedfulError(f"classifier_pooling is {self.classifier_pooling!r}", remedy="it is cls or mean")

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
        """As far as it was trained."""
        return self.max_position_embeddings

    @property
    def dropout(self) -> float:
        """That of its head."""
        return self.classifier_dropout

    def with_dropout(self, dropout: float) -> ModernBertConfig:
        """The same share of everything that may be dropped."""
        return replace(
            self,
            embedding_dropout=dropout,
            attention_dropout=dropout,
            mlp_dropout=dropout,
            classifier_dropout=dropout,
        )

    def is_local(self, layer: int) -> bool:
        """Whether layer 0 … L - 1 looks at a window only."""
        return bool(layer % self.global_attn_every_n_layers)

    @property
    def described(self) -> str:
        """With its heads."""
        return f"{super().described}, {self.num_attention_heads} heads"

    def norm(self) -> nn.LayerNorm:
        """A norm as all of its norms are."""
        return nn.LayerNorm(self.hidden_size, eps=self.norm_eps, bias=self.norm_bias)

    def build(self) -> ModernBert:
        """With what stands before its heads."""
        return ModernBert(self)


class ModernBertEmbeddings(TokenEmbeddings):
    """token, then LayerNorm and dropout."""

    def __init__(self, config: ModernBertConfig) -> None:
        super().__init__()
        self.token = nn.Embedding(config.vocab_size, config.hidden_size)
        self.norm = config.norm()
        self.dropout = Dropout(config.embedding_dropout)

    def forward(self, batch: Batch) -> Tensor:
        """(N,) ids -> (N, D)."""
        return self.dropout(self.norm(self.token(batch.ids)))  # type: ignore[no-any-return]


class ModernBertLayer(nn.Module):
    """x + attention(norm(x)), then x + down(act(a) · b) where a and b are the halves of up(norm(x))."""

    def __init__(self, config: ModernBertConfig, first: bool) -> None:
        """The `first` layer has no norm before its attention: the embeddings end with one."""
        super().__init__()
        width = config.hidden_size
        self.attention_norm: nn.Module = nn.Identity() if first else config.norm()
        self.attention = MultiHeadSelfAttention(
            width, config.num_attention_heads, config.attention_dropout, bias=config.attention_bias
        )
        self.attention_dropout = Dropout(config.attention_dropout)
        self.inner_norm = config.norm()
        self.up = nn.Linear(width, 2 * config.intermediate_size, bias=config.mlp_bias)
        self.activation = activation(config.hidden_activation)
        self.dropout = Dropout(config.mlp_dropout)
        self.down = nn.Linear(config.intermediate_size, width, bias=config.mlp_bias)

    def forward(
        self, x: Tensor, batch: Batch, rows: Tensor | None = None, places: Sequence[Places] | None = None
    ) -> Tensor:
        """(N, D) -> (N, D); with `rows` (M,), only the output of these flat rows, (M, D)."""
        attended = self.attention(self.attention_norm(x), batch.groups, rows, places)
        x = (x if rows is None else x[rows]) + self.attention_dropout(attended)
        value, gate = self.up(self.inner_norm(x)).chunk(2, dim=-1)
        return x + self.down(self.dropout(self.activation(value) * gate))  # type: ignore[no-any-return]

    def weights(self, x: Tensor, batch: Batch, places: Sequence[Places] | None = None) -> tuple[Tensor, ...]:
        """The attention map of every sequence, (H, T, T) each."""
        return self.attention.weights(self.attention_norm(x), batch.groups, places)

    def pack(self) -> None:
        """Make this layer faster on a CPU, for inference only."""
        for owner, name in ((self.attention, "qkv"), (self.attention, "out"), (self, "up"), (self, "down")):
            setattr(owner, name, packed(getattr(owner, name)))


class PredictionHead(nn.Module):
    """dense + activation + LayerNorm, which stands before every head of a ModernBERT."""

    def __init__(self, config: ModernBertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size, bias=config.classifier_bias)
        self.activation = activation(config.classifier_activation)
        self.norm = config.norm()

    def forward(self, states: Tensor) -> Tensor:
        """(M, D) -> (M, D)."""
        return self.norm(self.activation(self.dense(states)))  # type: ignore[no-any-return]


class ModernBert(BertStack):
    """The encoder, whose pooler is the head before all heads."""

    pools_tokens: ClassVar[bool] = True

    def __init__(self, config: ModernBertConfig) -> None:
        Encoder.__init__(self)
        self.config = config
        self.shape = config
        self.embeddings = ModernBertEmbeddings(config)
        self.layers = nn.ModuleList(ModernBertLayer(config, first=i == 0) for i in range(config.num_hidden_layers))
        self.norm = config.norm()
        self.pooler = PredictionHead(config)
        self.pooled = nn.Identity()

    def ended(self, x: Tensor) -> Tensor:
        """The norm that ends a stack of pre-norm layers."""
        return self.norm(x)  # type: ignore[no-any-return]

    def places(self, batch: Batch) -> Sequence[Sequence[Places] | None]:
        """Rotations, and windows for layers that look nearby."""
        config, like = self.shape, self.embeddings.token.weight
        head, reach = config.hidden_size // config.num_attention_heads, config.local_attention // 2
        everywhere, nearby = [], []
        for length in (group.length for group in batch.groups):
            # While a model is written for another engine a length is a symbol, and may be any.
            all_seen = isinstance(length, int) and length <= reach + 1
            seen = None if all_seen else window(length, reach).to(like.device)
            everywhere.append(Places(None, Rotation.of(length, head, config.global_rope_theta).to(like)))
            nearby.append(Places(seen, Rotation.of(length, head, config.local_rope_theta).to(like)))
        return [nearby if config.is_local(layer) else everywhere for layer in range(config.layers)]

    @property
    def summary_pooling(self) -> str:
        """As its config says."""
        return self.shape.classifier_pooling

    def summaries(self, selection: Selection) -> Tensor:
        """The first state of each text, or the mean of all of them."""
        if self.shape.classifier_pooling == "cls" or selection.states is not None:
            return super().summaries(selection)
        return pool(self(selection.batch).last, selection.batch.lengths, "mean")


class ModernBertMlm(nn.Module):
    """The head, the token embedding's matrix and a bias: logits over the vocabulary."""

    def __init__(self, config: ModernBertConfig) -> None:
        super().__init__()
        self.transform = PredictionHead(config)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, states: Tensor, matrix: Tensor) -> Tensor:
        """(M, D) and (V, D) -> (M, V)."""
        return F.linear(self.transform(states), matrix, self.bias)


def masked_lm(config: ModernBertConfig) -> ForMaskedLm:
    """The model for pretraining, whose one head is that of masked words."""
    return ForMaskedLm(config.build().without_pooler(), ModernBertMlm(config))
