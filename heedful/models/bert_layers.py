"""What BERT is made of, for all models that are built as it is: embeddings, layers, a pooler, and the MLM head.

Flat tokens go in and come out (see `heedful.schema`): the linear layers, norms and embeddings see (N, D), and only
attention knows where one sequence ends and the next begins. There is no padding anywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.errors import HeedfulError
from heedful.models.encoder import Encoder, EncoderConfig
from heedful.models.lone_text import LoneTextLayer
from heedful.nn.activations import activation, check_activation
from heedful.nn.attention import MultiHeadSelfAttention, Places
from heedful.nn.dropout import Dropout
from heedful.nn.packed_linear import packed
from heedful.schema import Batch, Encoded

S = TypeVar("S", bound="BertShape")
B = TypeVar("B", bound="BertStack")


@dataclass(frozen=True)
class BertShape(EncoderConfig):
    """What configs of such models have in common; the fields have Hugging Face's names, the defaults are BERT-base."""

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    pad_token_id: int = 0

    def __post_init__(self) -> None:
        check_heads(self.hidden_size, self.num_attention_heads)
        check_activation("hidden_act", self.hidden_act)

    @property
    def width(self) -> int:
        """D."""
        return self.hidden_size

    @property
    def layers(self) -> int:
        """L."""
        return self.num_hidden_layers

    @property
    def first_position(self) -> int:
        """The row of the position table for the first token of a text."""
        return 0

    @property
    def max_length(self) -> int:
        """One position a token."""
        return self.max_position_embeddings - self.first_position

    @property
    def segment_rows(self) -> int:
        """The rows of the segment table; 0 where there is none."""
        return 0

    @property
    def embedding_width(self) -> int:
        """The width of a token's vector before the first layer; where it is not D, a projection follows."""
        return self.hidden_size

    @property
    def projects(self) -> bool:
        """Whether a projection leads from the embeddings to the first layer."""
        return self.embedding_width != self.hidden_size

    @property
    def dropout(self) -> float:
        """That of hidden states."""
        return self.hidden_dropout_prob

    def with_dropout(self: S, dropout: float) -> S:
        """The same share of hidden states and of attention weights."""
        return replace(self, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout)

    @property
    def described(self) -> str:
        """With its heads."""
        return f"{super().described}, {self.num_attention_heads} heads"


def check_heads(width: int, heads: int) -> None:
    """Refuse a number of heads that does not divide the width."""
    if width % heads:
        what = f"hidden_size {width} is not a multiple of num_attention_heads {heads}"
        raise HeedfulError(what, remedy="choose a number of heads that divides the width")


class TokenEmbeddings(nn.Module):
    """What stands below the first layer: flat tokens in, (N, D) out."""

    token: nn.Embedding


class BertEmbeddings(TokenEmbeddings):
    """token + segment + position, then LayerNorm, dropout, and a projection where the layers are wider."""

    def __init__(self, config: BertShape) -> None:
        super().__init__()
        width = config.embedding_width
        self.first_position = config.first_position
        self.reads_segments = config.segments is not None
        self.token = nn.Embedding(config.vocab_size, width)
        self.segment = nn.Embedding(config.segment_rows, width) if config.segment_rows else None
        self.position = nn.Embedding(config.max_position_embeddings, width)
        self.norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = Dropout(config.hidden_dropout_prob)
        self.projection = nn.Linear(width, config.hidden_size) if config.projects else None

    def forward(self, batch: Batch) -> Tensor:
        """(N,) ids, segments and positions -> (N, D)."""
        x = self.dropout(self.norm(self.total(batch)))
        return x if self.projection is None else self.projection(x)  # type: ignore[no-any-return]

    def total(self, batch: Batch) -> Tensor:
        """The sum of all that is said of each token, (N, its width)."""
        places = batch.positions + self.first_position if self.first_position else batch.positions
        x = self.token(batch.ids)
        if self.segment is not None:
            x = x + (self.segment(batch.segments) if self.reads_segments else self.segment.weight[0])
        return x + self.position(places)  # type: ignore[no-any-return]


class BertLayer(nn.Module):
    """Self-attention, then a feed-forward network, each followed by residual + LayerNorm."""

    def __init__(self, config: BertShape) -> None:
        super().__init__()
        width, inner = config.hidden_size, config.intermediate_size
        self.attention = MultiHeadSelfAttention(width, config.num_attention_heads, config.attention_probs_dropout_prob)
        self.attention_norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.up = nn.Linear(width, inner)
        self.activation = activation(config.hidden_act)
        self.down = nn.Linear(inner, width)
        self.output_norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = Dropout(config.hidden_dropout_prob)
        self.of_lone_text: LoneTextLayer | None = None  # where this layer is packed

    def forward(
        self, x: Tensor, batch: Batch, rows: Tensor | None = None, places: Sequence[Places] | None = None
    ) -> Tensor:
        """(N, D) -> (N, D); with `rows` (M,), only the output of these flat rows, (M, D)."""
        if self.of_lone_text is not None and len(batch.lengths) == 1 and rows is None and places is None:
            return self.of_lone_text(x)
        attended = self.attention(x, batch.groups, rows, places)
        x = self.attention_norm((x if rows is None else x[rows]) + self.dropout(attended))
        x = self.output_norm(x + self.dropout(self.down(self.activation(self.up(x)))))
        return x

    def weights(self, x: Tensor, batch: Batch, places: Sequence[Places] | None = None) -> tuple[Tensor, ...]:
        """The attention map of every sequence, (H, T, T) each."""
        return self.attention.weights(x, batch.groups, places)

    def pack(self) -> None:
        """Make this layer faster on a CPU, for inference only."""
        fused = isinstance(self.activation, nn.GELU) and self.activation.approximate == "none"
        for owner, name in ((self.attention, "qkv"), (self.attention, "out"), (self, "up"), (self, "down")):
            setattr(owner, name, packed(getattr(owner, name), gelu=fused and name == "up"))
        if fused:
            self.activation = nn.Identity()  # the packed product has applied it
            products = (self.attention.qkv, self.attention.out, self.up, self.down)
            self.of_lone_text = LoneTextLayer(self.attention.heads, products, self.attention_norm, self.output_norm)


class BertStack(Encoder):
    """Embeddings and layers, and perhaps a pooler; ignores memory: every batch stands for itself."""

    pooler_activation: ClassVar[str] = "tanh"

    def __init__(self, config: BertShape, pooler: bool = True) -> None:
        super().__init__()
        self.config: EncoderConfig = config
        self.embeddings: TokenEmbeddings = self.embeddings_of(config)
        self.layers = nn.ModuleList(self.layer_of(config) for _ in range(config.stored_layers))
        self.pooler: nn.Module | None = nn.Linear(config.width, config.width) if pooler else None
        self.pooled = activation(self.pooler_activation)

    def embeddings_of(self, config: BertShape) -> TokenEmbeddings:
        """The first part, not yet started."""
        return BertEmbeddings(config)

    def layer_of(self, config: BertShape) -> nn.Module:
        """A layer, not yet started."""
        return BertLayer(config)

    def stack(self) -> Sequence[nn.Module]:
        """The layers in the order in which they are applied."""
        return list(self.layers)

    def places(self, batch: Batch) -> Sequence[Sequence[Places] | None]:
        """What positions mean to the attention of each layer, for each group; None where the embeddings say it all."""
        return [None] * self.layer_count

    def ended(self, x: Tensor) -> Tensor:
        """What comes after the last layer: nothing, as the layers end with a norm."""
        return x

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
        x, places = self.embeddings(batch), self.places(batch)
        if 0 in wanted:
            states[0] = x
        for number, layer in enumerate(self.stack()[: max(wanted | maps, default=0)], start=1):
            if number in maps:
                weights[number] = layer.weights(x, batch, places[number - 1])  # type: ignore[operator]
            x = layer(x, batch, None, places[number - 1])
            if number in wanted:
                states[number] = self.ended(x) if number == self.layer_count else x
        return Encoded(states, weights)

    def states_at(self, batch: Batch, rows: Tensor) -> Tensor:
        """The last layer's states at some flat rows only, (M, D); past attention, that layer computes nothing else.

        Enough for heads that look at [CLS] or at the masked tokens, and a good part of the work is saved.
        """
        x, places = self.embeddings(batch), self.places(batch)
        *below, last = self.stack()
        for layer, place in zip(below, places, strict=False):
            x = layer(x, batch, None, place)
        return self.ended(last(x, batch, rows, places[-1]))

    @property
    def token_matrix(self) -> Tensor:
        """(V, the width of the embeddings)."""
        return self.embeddings.token.weight

    def pack(self) -> None:
        """Make this encoder faster on a CPU, for inference only: it can no longer be trained, saved or moved."""
        for layer in self.layers:
            layer.pack()  # type: ignore[operator]

    def pool(self, summary: Tensor) -> Tensor:
        """tanh(W h + b), or another function, of the states that sum texts up, (B, D) -> (B, D)."""
        if self.pooler is None:
            raise HeedfulError(
                "this model has no pooler", remedy="use mean pooling, or a folder whose weights hold a pooler"
            )
        return self.pooled(self.pooler(summary))  # type: ignore[no-any-return]

    def without_pooler(self: B) -> B:
        """Hugging Face's classes have none either where nothing looks at it."""
        self.pooler = None
        return self


class MlmHead(nn.Module):
    """dense + activation + LayerNorm + the token embedding's matrix + a bias: logits over the vocabulary."""

    def __init__(self, config: BertShape, act: str | None = None) -> None:
        """`act` is that of the layers unless another is named."""
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.embedding_width)
        self.activation = activation(act or config.hidden_act)
        self.norm = nn.LayerNorm(config.embedding_width, eps=config.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, states: Tensor, matrix: Tensor) -> Tensor:
        """States of the positions to predict (M, D) and the tied matrix (V, its width) -> logits (M, V)."""
        return F.linear(self.norm(self.activation(self.dense(states))), matrix, self.bias)


class ForMaskedLm(nn.Module):
    """An encoder with an MLM head, for pretraining."""

    def __init__(self, encoder: Encoder, mlm: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.mlm = mlm

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        return self.encoder.token_matrix.device

    def mlm_logits(self, states: Tensor) -> Tensor:
        """Logits over the vocabulary at the given states of the last layer, (M, D) -> (M, V)."""
        return self.mlm(states, self.encoder.token_matrix)  # type: ignore[no-any-return]

    def nsp_logits(self, first: Tensor) -> Tensor:
        """Models of this kind do not judge pairs."""
        what = f"a model of the type {self.encoder.config.model_type} is not trained to judge pairs"
        raise HeedfulError(what, remedy="pretrain it with none for `pairs`")
