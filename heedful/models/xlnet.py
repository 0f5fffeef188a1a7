"""XLNet: Yang et al., "XLNet: Generalized Autoregressive Pretraining for Language Understanding", 2019.

Tokens are predicted one after the other in a random order. Two streams make that possible: the content stream h knows
the token that stands at a place, the query stream g knows only the place, and predicts from it:

    h_i = Attention(query = h_i, keys = h_j with j before i in the order, and i itself)
    g_i = Attention(query = g_i, keys = h_j with j before i in the order),  g_i = w, a learned vector, below layer 1

Only some tokens are predicted, the last ones of the order; the others see one another, and no predicted one. Flat
tokens go in and come out (see `heedful.schema`), and there is no padding.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.errors import HeedfulError
from heedful.models.encoder import Encoder, EncoderConfig
from heedful.models.sizes import TRANSFORMER_SIZES, size_named
from heedful.nn.dropout import Dropout
from heedful.nn.permutation import sights
from heedful.nn.relative_attention import RelativeAttention, Sight, Slots, distance_sinusoids
from heedful.schema import Batch, Encoded, Group
from heedful.text.frame import SummaryRow


@dataclass(frozen=True)
class XlnetConfig(EncoderConfig):
    """The shape of an XLNet; the fields have Hugging Face's names, the defaults are XLNet-base."""

    summary: ClassVar[SummaryRow] = "last"
    max_length: ClassVar[None] = None  # no position runs out

    vocab_size: int = 32000
    d_model: int = 768
    n_layer: int = 12
    n_head: int = 12
    d_inner: int = 3072
    d_head: int | None = None
    ff_activation: str = "gelu"
    dropout: float = 0.1
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    mem_len: int | None = None  # how many states of the text before are remembered; None for all that were given
    reuse_len: int | None = None  # of a text only so many are, from its beginning; None for all
    model_type: str = "xlnet"

    def __post_init__(self) -> None:
        if self.d_model % self.n_head or self.d_model % 2:
            raise HeedfulError(
                f"d_model {self.d_model} is not an even multiple of n_head {self.n_head}",
                remedy="choose a number of heads that divides the width, which is even",
            )
        if self.d_head not in (None, self.d_model // self.n_head):
            raise HeedfulError(
                f"d_head {self.d_head} is not d_model / n_head",
                remedy=f"leave it out or use {self.d_model // self.n_head}",
            )
        if self.ff_activation != "gelu":
            raise HeedfulError(
                f"ff_activation {self.ff_activation!r} is not supported", remedy="use 'gelu' (its erf form)"
            )

    @property
    def width(self) -> int:
        """D."""
        return self.d_model

    @property
    def layers(self) -> int:
        """L."""
        return self.n_layer

    @property
    def segments(self) -> int:
        """Two sides and the summary token; it matters only which tokens are in the same one."""
        return 3

    def with_dropout(self, dropout: float) -> XlnetConfig:
        """The same share everywhere."""
        return replace(self, dropout=dropout)

    @property
    def described(self) -> str:
        """With its heads."""
        return f"{super().described}, {self.n_head} heads"

    def build(self) -> Xlnet:
        """With a pooler."""
        return Xlnet(self)


def sized(size: str, vocab_size: int) -> XlnetConfig:
    """The config of a named size: nano, tiny, mini, small, medium, base or large."""
    layers, width, heads = size_named(size, TRANSFORMER_SIZES, "XLNet")
    return XlnetConfig(vocab_size=vocab_size, d_model=width, n_layer=layers, n_head=heads, d_inner=4 * width)


class XlnetEmbeddings(nn.Module):
    """The token vectors, which know no place, and the vector with which a query starts."""

    def __init__(self, config: XlnetConfig) -> None:
        super().__init__()
        self.token = nn.Embedding(config.vocab_size, config.d_model)
        self.mask_emb = nn.Parameter(torch.zeros(1, 1, config.d_model))


@dataclass(frozen=True)
class Streams:
    """The two streams on their way through the layers; without predictions there is only the content."""

    content: Tensor  # (N, D)
    query: Tensor | None = None  # (M, D)


@dataclass(frozen=True)
class Views:
    """What all layers need of a batch: its groups, its distances, and what each stream sees."""

    groups: tuple[Group, ...]
    distances: Tensor  # (P, D)
    content: tuple[Sight, ...]
    query: tuple[Sight, ...] = ()


class XlnetLayer(nn.Module):
    """Relative attention and a feed-forward with GELU (erf form), each followed by residual + LayerNorm."""

    also_forward: ClassVar[tuple[str, ...]] = ("answer",)  # computed like `forward` by whoever gathers the weights

    def __init__(self, config: XlnetConfig) -> None:
        super().__init__()
        width = config.d_model
        self.attention = RelativeAttention(width, config.n_head, config.dropout)
        self.attention_norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.up = nn.Linear(width, config.d_inner)
        self.down = nn.Linear(config.d_inner, width)
        self.output_norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = Dropout(config.dropout)

    def forward(self, streams: Streams, views: Views, memory: Tensor | None, rows: Tensor | None = None) -> Streams:
        """Both streams one layer up; with `rows` (M,), of the content only these flat rows, (M, D)."""
        h, g = streams.content, streams.query
        kept = self.attention.remember(h, views.groups, memory)
        query = None if g is None else self._finished(g, self.attention(g, kept, views.distances, views.query))
        content = self.attention(h, kept, views.distances, views.content)
        if rows is not None:
            h, content = h[rows], content[rows]
        return Streams(self._finished(h, content), query)

    def answer(self, streams: Streams, views: Views, memory: Tensor | None) -> Tensor:
        """The query stream alone one layer up, (M, D): above the last layer nobody looks at the content."""
        assert streams.query is not None
        kept = self.attention.remember(streams.content, views.groups, memory)
        return self._finished(streams.query, self.attention(streams.query, kept, views.distances, views.query))

    def read(self, x: Tensor, views: Views) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """The content one layer up, (N, D), and the keys and values that it was given, (N, D) each."""
        kept = self.attention.remember(x, views.groups)
        flat = [
            torch.cat([pair[part].permute(1, 2, 0, 3).flatten(0, 1).flatten(1) for pair in kept]) for part in (0, 1)
        ]
        return self._finished(x, self.attention(x, kept, views.distances, views.content)), (flat[0], flat[1])

    def step(self, streams: tuple[Tensor, Tensor], slots: Slots) -> tuple[Tensor, Tensor]:
        """The newest token of each of B · K hypotheses and the query for the next one, (B, K, D) each, one layer up."""
        attention, (h, g) = self.attention, streams
        attention.fill(h, slots)
        content, query = (attention.over(x, slots, near) for x, near in zip(streams, slots.near, strict=True))
        return self._finished(h, content), self._finished(g, query)

    def _finished(self, x: Tensor, mixed: Tensor) -> Tensor:
        x = self.attention_norm(x + self.dropout(self.attention.project(mixed)))
        inner = self.dropout(F.gelu(self.up(x)))
        return self.output_norm(x + self.dropout(self.down(inner)))  # type: ignore[no-any-return]


class Xlnet(Encoder):
    """The encoder. Its memory has a tensor (B, m, D) for each layer: what the layer was given in the batches before."""

    def __init__(self, config: XlnetConfig, pooler: bool = True) -> None:
        super().__init__()
        self.config: XlnetConfig = config
        self.embeddings = XlnetEmbeddings(config)
        self.layers = nn.ModuleList(XlnetLayer(config) for _ in range(config.n_layer))
        self.dropout = Dropout(config.dropout)
        self.pooler = nn.Linear(config.d_model, config.d_model) if pooler else None

    def forward(
        self,
        batch: Batch,
        hidden: Collection[int] = (-1,),
        attention: Collection[int] = (),
        memory: tuple[Tensor, ...] | None = None,
    ) -> Encoded:
        """The states and maps asked for; every token sees all of its sequence, and the memory of the one before it."""
        wanted, maps = self.asked_layers(hidden, attention)
        views = self.views(batch, memory)
        streams = Streams(self.dropout(self.embeddings.token(batch.ids)))
        states, weights = {0: streams.content}, {}
        for number in range(1, max(wanted | maps, default=0) + 1):
            layer, past = self._layer(number - 1), self._past(memory, number - 1)
            if number in maps:
                kept = layer.attention.remember(streams.content, views.groups, past)
                weights[number] = layer.attention.weights(streams.content, kept, views.distances, views.content)
            streams = layer(streams, views, past)
            states[number] = streams.content
        after = self._remembered([states[n] for n in range(len(states) - 1)], batch, memory)
        if self.layer_count in states:
            states[self.layer_count] = self.dropout(states[self.layer_count])
        return Encoded({number: states[number] for number in wanted}, weights, after)

    def states_at(self, batch: Batch, rows: Tensor) -> Tensor:
        """The last layer's states at some flat rows only, (M, D); past attention, that layer computes nothing else."""
        views = self.views(batch)
        streams = Streams(self.dropout(self.embeddings.token(batch.ids)))
        for number in range(self.layer_count - 1):
            streams = self._layer(number)(streams, views, None)
        last = self._layer(self.layer_count - 1)(streams, views, None, rows)
        return self.dropout(last.content)  # type: ignore[no-any-return]

    def predictions(
        self, batch: Batch, order: Tensor, targets: Tensor, memory: tuple[Tensor, ...] | None = None
    ) -> Encoded:
        """The query stream's last states at M tokens, (M, D), as layer L, and the memory for the batch that follows.

        `order` (N,) says when each token has its turn: it is seen by those whose turn comes later. With -1 it is seen
        by all, and sees only others like it. `targets` (M,) are the flat places to predict, in ascending order.
        """
        views = self.views(batch, memory, order, targets)
        streams = Streams(
            self.dropout(self.embeddings.token(batch.ids)),
            self.dropout(self.embeddings.mask_emb[0].expand(len(targets), -1)),
        )
        contents = [streams.content]
        for number in range(self.layer_count - 1):
            streams = self._layer(number)(streams, views, self._past(memory, number))
            contents.append(streams.content)
        last = self.layer_count - 1
        states = self.dropout(self._layer(last).answer(streams, views, self._past(memory, last)))
        return Encoded({self.layer_count: states}, {}, self._remembered(contents, batch, memory))

    def views(
        self,
        batch: Batch,
        memory: tuple[Tensor, ...] | None = None,
        order: Tensor | None = None,
        targets: Tensor | None = None,
    ) -> Views:
        """What the streams see of a batch and of the memory before it."""
        past = 0 if memory is None else memory[0].shape[1]
        longest = max(batch.lengths, default=0)
        distances = distance_sinusoids(past + longest - 1, past + 2 * longest - 1, self.width)
        content, query = sights(batch, past, order, targets)
        return Views(batch.groups, self.dropout(distances.to(batch.ids.device)), content, query)

    @property
    def token_matrix(self) -> Tensor:
        """(V, D)."""
        return self.embeddings.token.weight

    def pool(self, summary: Tensor) -> Tensor:
        """tanh(W h + b) of the last rows' states, (B, D) -> (B, D)."""
        if self.pooler is None:
            raise HeedfulError("this model has no pooler", remedy="use last or mean pooling")
        return torch.tanh(self.pooler(summary))

    def without_pooler(self) -> Xlnet:
        """Hugging Face's classes have none either where nothing looks at it."""
        self.pooler = None
        return self

    @property
    def blocks(self) -> Sequence[XlnetLayer]:
        """The layers, by their type."""
        return [layer for layer in self.layers if isinstance(layer, XlnetLayer)]

    def _layer(self, number: int) -> XlnetLayer:
        layer = self.layers[number]
        assert isinstance(layer, XlnetLayer)
        return layer

    @staticmethod
    def _past(memory: tuple[Tensor, ...] | None, number: int) -> Tensor | None:
        return None if memory is None else memory[number]

    def _remembered(
        self, contents: Sequence[Tensor], batch: Batch, memory: tuple[Tensor, ...] | None
    ) -> tuple[Tensor, ...] | None:
        """The last states of each sequence, as many as all have, without their gradients: a layer's input each."""
        if len(contents) < self.layer_count or not batch.lengths:
            return None
        sizes = [group.count * group.length for group in batch.groups]
        found = []
        for number, states in enumerate(contents):
            blocks, first, past = [], 0, self._past(memory, number)
            for rows, group in zip(torch.split(states.detach(), sizes), batch.groups, strict=True):
                own = rows.view(group.count, group.length, -1)[:, : self.config.reuse_len or None]
                old = [] if past is None else [past[first : first + group.count]]
                blocks.append(torch.cat([*old, own], 1))
                first += group.count
            kept = min([block.shape[1] for block in blocks] + ([self.config.mem_len] if self.config.mem_len else []))
            found.append(torch.cat([block[:, block.shape[1] - kept :] for block in blocks]))
        return tuple(found)


def initialise(model: nn.Module, config: XlnetConfig, seed: int) -> None:
    """XLNet's own start: normal weights of the configured spread, zero biases, norms at one; the same for one seed."""
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for module in model.modules():
            for name, parameter in module.named_parameters(recurse=False):
                if isinstance(module, nn.LayerNorm) and name == "weight":
                    parameter.fill_(1.0)
                elif name == "bias":
                    parameter.zero_()
                else:
                    parameter.normal_(0.0, config.initializer_range, generator=rng)
