"""GPT-2: Radford et al., "Language Models are Unsupervised Multitask Learners", 2019.

A Transformer that looks left: each token sees itself and what is before it. Norms stand before attention and
feed-forward, and one more at the end; positions are learned; the head is the token matrix itself.

    x ← x + W^O · heads(norm(x)),     x ← x + W₂ · gelu(W₁ · norm(x)),     p(next) = softmax(norm(x) Eᵀ)
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from heedful.errors import HeedfulError
from heedful.models.causal_state import CausalState, prompt_state
from heedful.models.encoder import Encoder, EncoderConfig, check_lengths
from heedful.models.language_model import TiedLanguageModel
from heedful.models.sizes import TRANSFORMER_SIZES, size_named
from heedful.nn.attention import MultiHeadSelfAttention, added_to_scores, mix
from heedful.nn.decoder_attention import KeyValues
from heedful.nn.dropout import Dropout
from heedful.nn.packed_linear import packed
from heedful.schema import Batch, Encoded
from heedful.text.frame import SummaryRow


@dataclass(frozen=True)
class GptConfig(EncoderConfig):
    """The shape of a GPT-2; the fields have Hugging Face's names, the defaults are the smallest published one."""

    summary: ClassVar[SummaryRow] = "last"
    summary_bias: ClassVar[bool] = False

    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    n_inner: int | None = None  # None: four times the width
    activation_function: str = "gelu_new"
    resid_pdrop: float = 0.1
    embd_pdrop: float = 0.1
    attn_pdrop: float = 0.1
    layer_norm_epsilon: float = 1e-5
    initializer_range: float = 0.02
    model_type: str = "gpt2"

    def __post_init__(self) -> None:
        for name in ("n_positions", "n_embd", "n_layer", "n_head"):
            if getattr(self, name) < 1:
                raise HeedfulError(f"{name} is {getattr(self, name)}", remedy="give a number above zero")
        if self.n_embd % self.n_head:
            raise HeedfulError(
                f"n_embd {self.n_embd} is not a multiple of n_head {self.n_head}",
                remedy="choose a number of heads that divides the width",
            )
        if self.activation_function not in ("gelu_new", "gelu_pytorch_tanh"):
            what = f"activation_function {self.activation_function!r} is not supported"
            raise HeedfulError(what, remedy="GPT-2 uses 'gelu_new' (GELU in its tanh form) and nothing else")

    @property
    def width(self) -> int:
        """D."""
        return self.n_embd

    @property
    def layers(self) -> int:
        """L."""
        return self.n_layer

    @property
    def max_length(self) -> int:
        """One position a token."""
        return self.n_positions

    @property
    def dropout(self) -> float:
        """That of hidden states."""
        return self.resid_pdrop

    def with_dropout(self, dropout: float) -> GptConfig:
        """The same share of states, embeddings and attention weights."""
        return replace(self, resid_pdrop=dropout, embd_pdrop=dropout, attn_pdrop=dropout)

    @property
    def described(self) -> str:
        """With its heads."""
        return f"{super().described}, {self.n_head} heads"

    def build(self) -> Gpt:
        """There is no pooler."""
        return Gpt(self)


# Under OpenAI's names from 12 layers on.
_OPENAI = {"base": "gpt2", "large": "gpt2-medium"}
SIZES = {_OPENAI.get(name, name): size for name, size in TRANSFORMER_SIZES.items()}


def sized(size: str, vocab_size: int) -> GptConfig:
    """The config of a named size: nano, tiny, mini, small, medium, gpt2 or gpt2-medium."""
    layers, width, heads = size_named(size, SIZES, "GPT")
    return GptConfig(vocab_size=vocab_size, n_embd=width, n_layer=layers, n_head=heads)


class GptEmbeddings(nn.Module):
    """token + position, then dropout."""

    def __init__(self, config: GptConfig) -> None:
        super().__init__()
        self.token = nn.Embedding(config.vocab_size, config.n_embd)
        self.position = nn.Embedding(config.n_positions, config.n_embd)
        self.dropout = Dropout(config.embd_pdrop)

    def forward(self, ids: Tensor, positions: Tensor) -> Tensor:
        """(N,) ids and positions -> (N, D)."""
        return self.dropout(self.token(ids) + self.position(positions))  # type: ignore[no-any-return]


class GptLayer(nn.Module):
    """Causal self-attention and a feed-forward with GELU (tanh form), each added to what its norm has read."""

    def __init__(self, config: GptConfig) -> None:
        super().__init__()
        width, inner = config.n_embd, config.n_inner or 4 * config.n_embd
        self.attention_norm = nn.LayerNorm(width, eps=config.layer_norm_epsilon)
        self.attention = MultiHeadSelfAttention(width, config.n_head, config.attn_pdrop, causal=True)
        self.feed_norm = nn.LayerNorm(width, eps=config.layer_norm_epsilon)
        self.up = nn.Linear(width, inner)
        self.activation: nn.Module = nn.GELU(approximate="tanh")
        self.down = nn.Linear(inner, width)
        self.dropout = Dropout(config.resid_pdrop)

    def forward(self, x: Tensor, batch: Batch, rows: Tensor | None = None) -> Tensor:
        """(N, D) -> (N, D); with `rows` (M,), only the output of these flat rows, (M, D)."""
        attended = self.attention(self.attention_norm(x), batch.groups, rows)
        return self.feed((x if rows is None else x[rows]) + self.dropout(attended))

    def feed(self, x: Tensor) -> Tensor:
        """The second half, (N, D) -> (N, D)."""
        return x + self.dropout(self.down(self.activation(self.up(self.feed_norm(x)))))  # type: ignore[no-any-return]

    def read(self, x: Tensor, batch: Batch) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """The output as of `forward`, and the keys and values of all tokens, (N, D) each."""
        qkv = self.attention.qkv(self.attention_norm(x))
        _, keys, values = qkv.chunk(3, -1)
        return self.feed(x + self.attention.over(qkv, batch.groups)), (keys, values)

    def step(self, x: Tensor, past: KeyValues, visible: Tensor | None) -> Tensor:
        """The newest token of each of B · K hypotheses, (B, K, D), whose keys and values fill the last K places."""
        count, hypotheses, width = x.shape
        heads = self.attention.heads
        split = self.attention.qkv(self.attention_norm(x)).view(count, hypotheses, 3, heads, width // heads)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)  # (B, H, K, d)
        past.keys[:, :, -hypotheses:], past.values[:, :, -hypotheses:] = key, value
        mixed = mix(query, *past, None if visible is None else visible[:, None])
        return self.feed(x + self.attention.out(mixed.transpose(1, 2).reshape(x.shape)))


class Gpt(Encoder):
    """The encoder, which ignores segments and memory: every batch stands for itself."""

    def __init__(self, config: GptConfig) -> None:
        super().__init__()
        self.config: GptConfig = config
        self.embeddings = GptEmbeddings(config)
        self.layers = nn.ModuleList(GptLayer(config) for _ in range(config.n_layer))
        self.norm = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)

    @property
    def blocks(self) -> Sequence[GptLayer]:
        """The layers, by their type."""
        return [layer for layer in self.layers if isinstance(layer, GptLayer)]

    def forward(
        self,
        batch: Batch,
        hidden: Collection[int] = (-1,),
        attention: Collection[int] = (),
        memory: tuple[Tensor, ...] | None = None,
    ) -> Encoded:
        """The states and maps asked for; the last layer's states have passed the last norm, as Hugging Face has it."""
        check_lengths(batch, self.config.max_length)
        wanted, maps = self.asked_layers(hidden, attention)
        states: dict[int, Tensor] = {}
        weights: dict[int, tuple[Tensor, ...]] = {}
        x = self.embeddings(batch.ids, batch.positions)
        if 0 in wanted:
            states[0] = x
        for number, layer in enumerate(self.blocks[: max(wanted | maps, default=0)], start=1):
            if number in maps:
                weights[number] = layer.attention.weights(layer.attention_norm(x), batch.groups)
            x = layer(x, batch)
            if number in wanted:
                states[number] = self.norm(x) if number == self.layer_count else x
        return Encoded(states, weights)

    def states_at(self, batch: Batch, rows: Tensor) -> Tensor:
        """The last layer's states at some flat rows only, (M, D); past attention, that layer computes nothing else."""
        check_lengths(batch, self.config.max_length)
        x = self.embeddings(batch.ids, batch.positions)
        for layer in self.blocks[:-1]:
            x = layer(x, batch)
        return self.norm(self.blocks[-1](x, batch, rows))  # type: ignore[no-any-return]

    @property
    def token_matrix(self) -> Tensor:
        """(V, D)."""
        return self.embeddings.token.weight

    def pack(self) -> None:
        """Make this encoder faster on a CPU, for inference only: it can no longer be trained, saved or moved."""
        for layer in self.blocks:
            for owner, name in ((layer.attention, "qkv"), (layer.attention, "out"), (layer, "up"), (layer, "down")):
                setattr(owner, name, packed(getattr(owner, name), gelu=name == "up", form="tanh"))
            layer.activation = nn.Identity()  # the packed product has applied it


class GptForPretraining(TiedLanguageModel):
    """GPT with its head."""

    encoder: Gpt

    def __init__(self, config: GptConfig) -> None:
        super().__init__(Gpt(config))

    def start(self, read: Batch, hypotheses: int, longest: int) -> CausalState:
        """The keys and values of what was read."""
        encoder = self.encoder
        check_lengths(read, encoder.config.max_length)
        full = replace(read, groups=tuple(group for group in read.groups if group.length))
        x, pairs = encoder.embeddings(read.ids, read.positions), []
        for layer in encoder.blocks:
            x, pair = layer.read(x, full) if full.groups else (x, (x, x))
            pairs.append(pair)
        return prompt_state(read.lengths, pairs, longest * hypotheses, x, encoder.config.n_head)

    def step(self, tokens: Tensor, state: CausalState) -> tuple[Tensor, CausalState]:
        """Each hypothesis sees the prompt and its ancestors."""
        count, hypotheses = tokens.shape
        seen, slots = state.cache.seen(count, hypotheses), state.cache.filled + hypotheses
        # Beside others that go on, one that has filled the model is still computed, though nobody looks at it.
        places = state.positions.clamp_max(self.encoder.config.max_length - 1)
        x = self.encoder.embeddings(tokens, places[:, None].expand_as(tokens))
        added = None if seen is None else added_to_scores(seen, x)
        for layer, pair in zip(self.encoder.blocks, state.cache.past, strict=True):
            x = layer.step(x, pair.first(slots), added)
        return self.logits(self.encoder.norm(x)), state.after(seen, hypotheses)


def initialise(model: nn.Module, config: GptConfig, seed: int) -> None:
    """GPT-2's own start: normal weights, zero biases, norms at one; the same for one seed.

    What is added to the residual stream is smaller the more layers add to it, by √(2 L).
    """
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, module in model.named_modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                adds = name.endswith(("attention.out", "down"))
                spread = config.initializer_range / (math.sqrt(2 * config.n_layer) if adds else 1.0)
                module.weight.normal_(0.0, spread, generator=rng)
            if isinstance(module, nn.Linear) and module.bias is not None:
                module.bias.zero_()
            if isinstance(module, nn.LayerNorm):
                module.weight.fill_(1.0)
                module.bias.zero_()
