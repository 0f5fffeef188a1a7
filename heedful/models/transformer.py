"""The Transformer for translation: Vaswani et al., "Attention Is All You Need", 2017.

Flat tokens go through all linear layers and norms (see `heedful.schema`); a padded block exists inside the decoder's
attention only. The encoder is the paper's own, or one that was pretrained, such as a BERT.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.errors import HeedfulError
from heedful.models.encoder import Encoder as Pretrained
from heedful.models.encoder import EncoderConfig, check_lengths
from heedful.models.sizes import size_named
from heedful.models.transformer_state import TransformerState
from heedful.nn.attention import added_to_scores, causal_visible, padding_visible
from heedful.nn.decoder_attention import KeyValues, Memory
from heedful.nn.int8 import Int8Linear
from heedful.nn.packed_linear import packed, tied_linear
from heedful.nn.ragged import Layout, layout_of
from heedful.nn.transformer_layers import Decoder, Embeddings, Encoder, LayerShape, Positions, View
from heedful.schema import Batch, Bitext


@dataclass(frozen=True)
class TransformerConfig:
    """The shape of a Transformer; the defaults are the paper's base size.

    share      one table embeds source and target; the vocabulary projection is the target's table in any case
    encoder    the shape of a pretrained one that takes the encoder's place, which then has no layers of its own
    """

    source_vocab_size: int
    target_vocab_size: int
    share: bool = True
    encoder_layers: int = 6
    decoder_layers: int = 6
    width: int = 512
    heads: int = 8
    inner: int = 2048
    pre_norm: bool = False
    positions: Literal["sinusoidal", "learned"] = "sinusoidal"
    max_length: int = 512
    dropout: float = 0.1
    attention_dropout: float = 0.0
    layer_norm_eps: float = 1e-5
    encoder: EncoderConfig | None = None

    def __post_init__(self) -> None:
        self._check_numbers()
        if self.positions not in ("sinusoidal", "learned"):
            raise HeedfulError(f"positions are {self.positions!r}", remedy="choose sinusoidal or learned")
        if self.share and self.source_vocab_size != self.target_vocab_size:
            raise HeedfulError(
                f"a shared table cannot have {self.source_vocab_size} and {self.target_vocab_size} pieces",
                remedy="learn one vocabulary for both languages, or let each have its own table",
            )
        if self.encoder is not None and (
            self.share or self.encoder_layers or self.source_vocab_size != self.encoder.vocab_size
        ):
            raise HeedfulError(
                "with a pretrained encoder, share is false, encoder_layers 0 and source_vocab_size that of the encoder",
                remedy="set them so; `with_encoder` does it",
            )

    def _check_numbers(self) -> None:
        sizes = ("source_vocab_size", "target_vocab_size", "decoder_layers", "width", "heads", "inner", "max_length")
        for name in (*sizes, *(["encoder_layers"] if self.encoder is None else [])):
            if getattr(self, name) < 1:
                raise HeedfulError(f"{name} is {getattr(self, name)}", remedy=f"{name} must be at least 1")
        for name in ("dropout", "attention_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise HeedfulError(f"{name} is {getattr(self, name)}", remedy=f"0 ≤ {name} < 1")
        if self.width % self.heads:
            raise HeedfulError(
                f"width {self.width} is not a multiple of heads {self.heads}",
                remedy="choose a number of heads that divides the width",
            )

    @property
    def layer(self) -> LayerShape:
        """What all layers have in common."""
        rates = (self.dropout, self.attention_dropout)
        return LayerShape(self.width, self.heads, self.inner, self.pre_norm, *rates, self.layer_norm_eps)


# Layers on each side, width, heads, width inside the feed-forward: tiny, small and medium for small data, which are
# pre-norm because that takes higher learning rates; base and big are the paper's.
SIZES = {
    "tiny": (4, 128, 4, 256),
    "small": (3, 256, 4, 1024),
    "medium": (6, 512, 4, 1024),
    "base": (6, 512, 8, 2048),
    "big": (6, 1024, 16, 4096),
}
OF_THE_PAPER = ("base", "big")
COMPACT_EVERY = 5  # steps of a search: looking for slots that nothing sees any more takes a little time itself


def sized(size: str, source_vocab_size: int, target_vocab_size: int, share: bool = True) -> TransformerConfig:
    """The config of a size: tiny, small, medium, or the paper's base or big."""
    layers, width, heads, inner = size_named(size, SIZES, "Transformer")
    shape = (layers, layers, width, heads, inner)
    return TransformerConfig(source_vocab_size, target_vocab_size, share, *shape, pre_norm=size not in OF_THE_PAPER)


def with_encoder(config: TransformerConfig, encoder: EncoderConfig) -> TransformerConfig:
    """The same decoder behind a pretrained encoder, which brings its own vocabulary, embeddings and positions."""
    return replace(config, encoder=encoder, encoder_layers=0, share=False, source_vocab_size=encoder.vocab_size)


class Transformer(nn.Module):
    """Encoder and decoder; with `encoder`, one of the config's shape that has been filled before."""

    def __init__(self, config: TransformerConfig, encoder: Pretrained | None = None) -> None:
        super().__init__()
        self.config = config
        self.target = _embeddings(config, config.target_vocab_size)
        own = config.encoder is None and not config.share
        self.source = _embeddings(config, config.source_vocab_size) if own else None  # None: one of the others'
        self.encoder = _encoder(config, encoder)
        memory_width = config.width if config.encoder is None else config.encoder.width
        self.decoder = Decoder(config.layer, config.decoder_layers, memory_width)
        self.projection: nn.Module | None = None  # onto the vocabulary, rounded or packed

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        return self.target.token.weight.device

    def forward(self, bitext: Bitext) -> Tensor:
        """The decoder's states at each position of the targets, which sees the right words before it, (M, D)."""
        return self.decoder(*self._teacher_forced(bitext))  # type: ignore[no-any-return]

    def logits(self, states: Tensor) -> Tensor:
        """(…, D) -> (…, V) over the target's vocabulary."""
        if self.projection is not None:
            return self.projection(states.flatten(0, -2)).view(*states.shape[:-1], -1)  # type: ignore[no-any-return]
        return F.linear(states, self.target.token.weight)

    def encode(self, source: Batch) -> Memory:
        """What the decoder needs of B source sentences."""
        layout = layout_of(source.lengths, source.ids.device)
        visible = None if layout.cells is None else padding_visible(source.lengths).to(source.ids.device)
        return self.decoder.remember(self.source_states(source), layout, visible)

    def source_states(self, source: Batch) -> Tensor:
        """The encoder's states, (N, its width)."""
        if self.config.encoder is not None:
            check_lengths(source, self.config.encoder.max_length)
            return self.encoder(source).last  # type: ignore[no-any-return]
        check_lengths(source, self.config.max_length)
        embedded = (self.source or self.target)(source.ids, source.positions)
        return self.encoder(embedded, source.groups)  # type: ignore[no-any-return]

    def start(self, memory: Memory, beam: int, longest: int) -> TransformerState:
        """Before the first of at most `longest` steps, with room for `beam` hypotheses a sentence."""
        if longest > self.config.max_length:
            raise HeedfulError(
                f"{longest} symbols are more than the {self.config.max_length} positions of this model",
                remedy="ask for shorter translations",
            )
        like, slots = memory.layers[0].keys, longest * beam
        shape = (memory.sentences, self.config.heads, slots, self.config.width // self.config.heads)
        past = tuple(KeyValues(like.new_empty(shape), like.new_empty(shape)) for _ in memory.layers)
        return TransformerState(memory.contiguous(), past)

    def step(self, tokens: Tensor, state: TransformerState) -> tuple[Tensor, TransformerState]:
        """Give each hypothesis its newest symbol, tokens (B, K); logits of the next one (B, K, V), and the new state.

        The old state cannot be used again.
        """
        states, after = self.advance(tokens, state)
        return self.logits(states), after

    def advance(self, tokens: Tensor, state: TransformerState) -> tuple[Tensor, TransformerState]:
        """As `step`, but the decoder's states (B, K, D) and not their logits."""
        sentences, hypotheses = tokens.shape
        state = state if state.time % COMPACT_EVERY else state.compact()
        seen = state.seen(sentences, hypotheses)
        added = None if seen is None else added_to_scores(seen, state.past[0].keys)[:, None]
        view = View(Layout(sentences, hypotheses, None), added)
        slots, ids = state.filled + hypotheses, tokens.flatten()
        embedded = self.target(ids, torch.full_like(ids, state.time))
        assert state.memory is not None
        states = self.decoder(embedded, view, state.memory, [pair.first(slots) for pair in state.past])
        return states.view(sentences, hypotheses, -1), state.after(seen, hypotheses)

    def alignments(self, bitext: Bitext, layer: int = -1, head: int | None = None) -> list[Tensor]:
        """How much each target position looks at each source token, (T, S) a sentence, by one head or on average.

        Layers are numbered 1 … L, or -1 … -L from the last one; heads 0 … H - 1.
        """
        number = self.layer_number(layer)
        if head is not None and not 0 <= head < self.config.heads:
            raise HeedfulError(f"there is no head {head}", remedy=f"the heads are 0 … {self.config.heads - 1}")
        weights = self.decoder.alignment(*self._teacher_forced(bitext), number)  # (B, H, T, S)
        weights = weights.mean(1) if head is None else weights[:, head]
        sizes = zip(bitext.target.lengths, bitext.source.lengths, strict=True)
        return [block[:t, :s] for block, (t, s) in zip(weights, sizes, strict=True)]

    def pack(self) -> None:
        """Make this model faster on a CPU, for inference only: it can no longer be trained, saved or moved."""
        if self.config.encoder is not None:
            self.encoder.pack()  # type: ignore[operator]
        for module in list(self.modules()):
            for name, child in list(module.named_children()):
                if isinstance(child, nn.Linear | Int8Linear):
                    setattr(module, name, packed(child))
        self.projection = self.projection or packed(tied_linear(self.target.token.weight))

    def _teacher_forced(self, bitext: Bitext) -> tuple[Tensor, View, Memory]:
        """What the decoder is given in training: the embedded targets, what each position sees, and the memory."""
        target = bitext.target
        check_lengths(target, self.config.max_length)
        layout = layout_of(target.lengths, target.ids.device)
        # Padding is on the right of all that is real, so it is in the future and needs no mask of its own.
        view = View(layout, causal_visible(layout.longest).to(target.ids.device))
        return self.target(target.ids, target.positions), view, self.encode(bitext.source)

    def layer_number(self, layer: int) -> int:
        """A decoder layer by its number from 1 on, where it may be counted from the end: -1 is the last."""
        last = self.config.decoder_layers
        number = layer + last + 1 if layer < 0 else layer
        if not 1 <= number <= last:
            raise HeedfulError(
                f"the decoder has no layer {layer}", remedy=f"its layers are 1 … {last} (or -1 … {-last})"
            )
        return number


def initialise_transformer(model: Transformer, seed: int) -> None:
    """Uniform weights after Glorot, zero biases, norms at one, tables of spread D^-½; the same for one seed.

    A pretrained encoder stays as it is.
    """
    rng = torch.Generator().manual_seed(seed)
    spread = model.config.width**-0.5
    encoder = model.encoder if model.config.encoder is None else None
    parts = [part for part in (model.target, model.source, encoder, model.decoder) if part is not None]
    with torch.no_grad():
        for module in (m for part in parts for m in part.modules()):
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight, generator=rng)
                module.bias.zero_()
            if isinstance(module, nn.Embedding):
                module.weight.normal_(0.0, spread, generator=rng)
            if isinstance(module, Positions) and isinstance(module.table, nn.Parameter):
                module.table.normal_(0.0, spread, generator=rng)
            if isinstance(module, nn.LayerNorm):
                module.weight.fill_(1.0)
                module.bias.zero_()


def _embeddings(config: TransformerConfig, vocab_size: int) -> Embeddings:
    positions = Positions(config.max_length, config.width, learned=config.positions == "learned")
    return Embeddings(vocab_size, config.width, positions, config.dropout)


def _encoder(config: TransformerConfig, given: Pretrained | None) -> nn.Module:
    if config.encoder is None and given is None:
        return Encoder(config.layer, config.encoder_layers)
    if config.encoder is None or (given is not None and given.config != config.encoder):
        raise HeedfulError("the encoder is not of the config's shape", remedy="take the config of `with_encoder`")
    return (given or config.encoder.build()).without_pooler()  # nothing looks at it
