"""The LSTM language model: Hochreiter and Schmidhuber, 1997; Zaremba et al., "Recurrent Neural Network Regularization",
2014; the output tied to the embeddings as in Press and Wolf, 2017.

It reads one way and carries all that it knows of the text in a state of fixed size, from batch to batch if it is given
the state as memory:

    h_t, c_t = LSTM(dropout(x_t), h_{t-1}, c_{t-1}),     p(next) = softmax(dropout(h_t) Eᵀ)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from heedful.errors import HeedfulError
from heedful.models.encoder import Encoder, EncoderConfig
from heedful.models.language_model import TiedLanguageModel
from heedful.models.sizes import size_named
from heedful.nn.dropout import Dropout
from heedful.nn.padded_lstm import over_block
from heedful.nn.recurrent import one_step, through_runs
from heedful.schema import Batch, Encoded, Group
from heedful.text.frame import SummaryRow

MOST_LAYERS = 3


@dataclass(frozen=True)
class LstmConfig(EncoderConfig):
    """The shape of an LSTM language model; embeddings are as wide as states, so that the output can be tied."""

    summary: ClassVar[SummaryRow] = "last"
    max_length: ClassVar[None] = None  # no position runs out

    vocab_size: int = 0
    width: int = 256
    layers: int = 2
    dropout: float = 0.2
    model_type: str = "lstm-lm"

    def __post_init__(self) -> None:
        if not 1 <= self.layers <= MOST_LAYERS or self.width < 1:
            what = f"{self.layers} LSTM layers of width {self.width}"
            raise HeedfulError(what, remedy=f"use 1 to {MOST_LAYERS} layers of a width above zero")

    def with_dropout(self, dropout: float) -> LstmConfig:
        """The same share of embeddings, between layers and at the top."""
        return replace(self, dropout=dropout)

    def build(self) -> Lstm:
        """There is no pooler."""
        return Lstm(self)


# Layers and width.
SIZES = {"nano": (1, 64), "tiny": (1, 128), "mini": (2, 256), "small": (2, 512), "medium": (2, 650), "large": (2, 1500)}


def sized(size: str, vocab_size: int) -> LstmConfig:
    """The config of a named size: nano, tiny, mini, small, or Zaremba's medium or large."""
    layers, width = size_named(size, SIZES, "LSTM")
    return LstmConfig(vocab_size, width, layers)


class LstmEmbeddings(nn.Module):
    """The vectors of tokens, some of their numbers dropped."""

    def __init__(self, config: LstmConfig) -> None:
        super().__init__()
        self.token = nn.Embedding(config.vocab_size, config.width)
        self.dropout = Dropout(config.dropout)

    def forward(self, ids: Tensor) -> Tensor:
        """(N,) -> (N, D)."""
        return self.dropout(self.token(ids))  # type: ignore[no-any-return]


class Lstm(Encoder):
    """The encoder; its memory is the state of each sequence after its last token: hidden and cell, (B, L, D) each."""

    has_attention = False

    def __init__(self, config: LstmConfig) -> None:
        super().__init__()
        self.config: LstmConfig = config
        self.embeddings = LstmEmbeddings(config)
        self.layers = nn.ModuleList(nn.LSTM(config.width, config.width) for _ in range(config.layers))
        self.dropout = Dropout(config.dropout)

    @property
    def cells(self) -> Sequence[nn.LSTM]:
        """The layers, by their type."""
        return [layer for layer in self.layers if isinstance(layer, nn.LSTM)]

    @property
    def memory_shapes(self) -> Mapping[str, tuple[int, ...]]:
        """What it carries from batch to batch, for each sequence."""
        shape = (self.config.layers, self.config.width)
        return {"hidden": shape, "cell": shape}

    def forward(
        self,
        batch: Batch,
        hidden: Collection[int] = (-1,),
        attention: Collection[int] = (),
        memory: tuple[Tensor, ...] | None = None,
    ) -> Encoded:
        """The states asked for, and the memory after each sequence; all layers are computed for it."""
        wanted, _ = self.asked_layers(hidden, attention)
        x = self.embeddings(batch.ids)
        if batch.block is not None:
            padded = self._padded_states(x, batch.block)
            return Encoded({layer: padded[layer] for layer in wanted}, {})
        shape = (len(batch.lengths), *self.memory_shapes["hidden"])
        before = memory or (x.new_zeros(shape), x.new_zeros(shape))
        states, after = {0: x}, []
        for number, cell in enumerate(self.cells):
            begun = [state[:, number].unsqueeze(0).to(x.dtype) for state in before]
            x, ended = through_runs(cell, x, batch.lengths, begun)
            x = self.dropout(x)
            states[number + 1] = x
            after.append(torch.cat(ended))  # (2, B, D)
        joined = torch.stack(after, 2)  # (2, B, L, D)
        return Encoded({layer: states[layer] for layer in wanted}, {}, (joined[0], joined[1]))

    def _padded_states(self, x: Tensor, block: Group) -> list[Tensor]:
        """Those of all layers over padded sequences, which leave no memory."""
        assert block.visible is not None
        counts = block.visible.sum(-1).flatten()
        states = [x]
        for cell in self.cells:
            said = over_block(cell, states[-1].view(block.count, block.length, -1), counts)
            states.append(self.dropout(said.flatten(0, 1)))
        return states

    @property
    def token_matrix(self) -> Tensor:
        """(V, D)."""
        return self.embeddings.token.weight


@dataclass(frozen=True)
class LstmState:
    """K hypotheses of each of B texts: the state after each, hidden and cell."""

    tensors: tuple[Tensor, ...]  # (B, K, L, D) each

    def reorder(self, parents: Tensor) -> LstmState:
        """Hypothesis k of each text goes on from hypothesis parents[b, k] of the same text; parents (B, K)."""
        index = parents[..., None, None]
        return LstmState(tuple(x.gather(1, index.expand(-1, -1, *x.shape[2:])) for x in self.tensors))

    def keep(self, sentences: Tensor) -> LstmState:
        """Only these texts go on."""
        return LstmState(tuple(x.index_select(0, sentences) for x in self.tensors))


class LstmForPretraining(TiedLanguageModel):
    """The LSTM with its head."""

    encoder: Lstm

    def __init__(self, config: LstmConfig) -> None:
        super().__init__(Lstm(config))

    def start(self, read: Batch, hypotheses: int, longest: int) -> LstmState:
        """The states after what was read; they need no more room for what is to come."""
        memory = self.encoder(read).memory
        assert memory is not None
        return LstmState(tuple(state.unsqueeze(1) for state in memory))

    def step(self, tokens: Tensor, state: LstmState) -> tuple[Tensor, LstmState]:
        """Each hypothesis goes on from its own state."""
        x = self.encoder.embeddings(tokens.flatten())
        flat, after = [tensor.flatten(0, 1) for tensor in state.tensors], []  # (B · K, L, D)
        for number, cell in enumerate(self.encoder.cells):
            x, ended = one_step(cell, x, [tensor[:, number].unsqueeze(0).contiguous() for tensor in flat])
            after.append(torch.cat(ended))
        joined = torch.stack(after, 2).view(2, *tokens.shape, *state.tensors[0].shape[2:])  # (2, B, K, L, D)
        return self.logits(x).view(*tokens.shape, -1), LstmState((joined[0], joined[1]))


def initialise(model: nn.Module, config: LstmConfig, seed: int) -> None:
    """Uniform weights of ±1/√D, embeddings of ±0.1, biases at zero but for the forget gate's, at one: it remembers."""
    rng = torch.Generator().manual_seed(seed)
    bound = config.width**-0.5
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, (nn.Embedding, nn.Linear)):
                reach = 0.1 if isinstance(module, nn.Embedding) else bound
                module.weight.uniform_(-reach, reach, generator=rng)
            if isinstance(module, nn.Linear):
                module.bias.zero_()
            if isinstance(module, nn.LSTM):
                for name, parameter in module.named_parameters():
                    if name.startswith("weight"):
                        parameter.uniform_(-bound, bound, generator=rng)
                    else:
                        parameter.zero_()
                module.get_parameter("bias_ih_l0")[config.width : 2 * config.width] = (
                    1.0  # gates: input, forget, cell, output
                )
