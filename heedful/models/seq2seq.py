"""Recurrent sequence to sequence: one network reads a sentence, another writes one.

The encoder reads x_1 … x_N into states h_1 … h_N and a context c: h_N ("last"), tanh(W h_N) ("transform"), or tanh(W h̄)
of their mean ("all"). With two directions h_N is the last state of each. There are four decoders:

    1          c is the first state h'_0 and nothing else comes in       h'_t = f(h'_t-1)
    2          c comes in at every step, the first state is its own      h'_t = f(h'_t-1, c)
    3          as 2, and the word before comes in too                    h'_t = f(h'_t-1, [c; y_t-1])
    attention  each word has a context of its own, c_t, a mixture of h_1 … h_N

3 is Cho et al.'s (2014). An LSTM whose first state is c begins with c in both of its states. Attention comes in two
designs:

    attention_feeds = False   h'_t = f(h'_t-1, y_t-1), then c_t by asking with h'_t: Luong, Pham and Manning, 2015,
                              without input feeding. Where a word looks does not come into the recurrence, so in
                              training all steps are one call of torch's, and all attentions one product.
    attention_feeds = True    c_t by asking with h'_t-1, then h'_t = f(h'_t-1, [y_t-1; c_t]): Bahdanau, Cho and Bengio,
                              2015. The decoder knows where it has looked, and goes step by step even in training.

The logits of word t are E tanh(W [h'_t; c_t]) + b with the embeddings E of the target words.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from heedful.errors import HeedfulError
from heedful.models.rnn_decoder import Decoded, RnnDecoder
from heedful.models.rnn_state import RnnMemory, RnnState
from heedful.models.seq2seq_config import Seq2SeqConfig
from heedful.nn.dropout import Dropout
from heedful.nn.pooling import pool
from heedful.nn.ragged import layout_of
from heedful.nn.recurrent import layers_of, over_runs
from heedful.nn.scores import KeyedMemory
from heedful.schema import Batch, Bitext

__all__ = ["Seq2Seq", "Seq2SeqConfig", "initialise_seq2seq"]


class Seq2Seq(nn.Module):
    """An encoder and a decoder, and between them a context or attention."""

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        self.config = config
        width, embedding, directions = config.hidden_size, config.embedding_size, 1 + config.bidirectional
        self.embedding = None if config.share else nn.Embedding(config.source_vocab_size, embedding)
        self.dropout = Dropout(config.dropout)
        self.encoder = layers_of(
            config.cell, embedding, width // directions, config.layers, config.dropout, config.bidirectional
        )
        transforms = config.context != "last" and config.uses_context
        self.transform = nn.Linear(width, width) if transforms else None
        self.decoder = RnnDecoder(config)

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        return self.decoder.bias.device

    @property
    def draws(self) -> bool:
        """Whether it is in training with hard attention and the score-function gradient: then `drawn` is to be used."""
        config = self.config
        return (
            self.training and config.attends and config.attention == "hard" and config.hard_gradient == "score-function"
        )

    def forward(self, bitext: Bitext, forcing: float = 1.0, rng: torch.Generator | None = None) -> Tensor:
        """What `logits` makes words of, (R, embedding_size), for each of the R target words.

        Each step of each sentence by itself is given the right word before with probability `forcing`, else the word
        that the model itself says there. Decoders 1 and 2 take no words and refuse to be forced in part.
        """
        if self.draws:
            raise HeedfulError(
                "hard attention with the score-function gradient needs the losses to learn from",
                remedy="use `drawn` and add `score_function_term`, or choose the straight-through gradient",
            )
        return self._decoded(bitext, forcing, rng).outputs

    def drawn(self, bitext: Bitext, forcing: float = 1.0, rng: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """As forward, and the log-probability of the places that each word drew, (R,), for `score_function_term`."""
        decoded = self._decoded(bitext, forcing, rng)
        if decoded.look is None:
            raise HeedfulError("a decoder without attention draws nothing", remedy="ask `draws` first")
        return decoded.outputs, decoded.look.log_probability

    def logits(self, states: Tensor) -> Tensor:
        """(…, embedding_size) -> (…, V)."""
        return self.decoder.logits(states)

    def alignments(self, bitext: Bitext, layer: int = -1, head: int | None = None) -> list[Tensor]:
        """Where each target word looks, a (T, S) matrix a sentence, by query number `head` or the mean of all."""
        self._check_alignments(layer, head)
        look = self._decoded(bitext, 1.0, None).look
        assert look is not None
        weights = look.weights.mean(1) if head is None else look.weights[:, head]  # (R, S)
        rows = torch.split(weights, list(bitext.target.lengths))
        return [row[:, :length] for row, length in zip(rows, bitext.source.lengths, strict=True)]

    def encode(self, source: Batch) -> RnnMemory:
        """Read the source sentences."""
        embedding = self.decoder.embedding if self.embedding is None else self.embedding
        states = over_runs(self.encoder, self.dropout(embedding(source.ids)), source.lengths)  # (N, D)
        context = self._context(states, source.lengths)
        if self.decoder.queries is None:
            return RnnMemory(context, None)
        layout = layout_of(source.lengths, states.device)
        keys = self.decoder.queries.score.project(states)
        visible = None if layout.cells is None else layout.pad(torch.ones_like(source.ids)).bool()
        return RnnMemory(context, KeyedMemory(layout.pad(states), layout.pad(keys), visible))

    def start(self, memory: RnnMemory, beam: int, longest: int) -> RnnState:
        """Before the first word; the state does not grow, so it does not matter how many there will be."""
        return self.decoder.start(memory)

    def step(self, tokens: Tensor, state: RnnState) -> tuple[Tensor, RnnState]:
        """The logits (B, K, V) of the words after `tokens` (B, K), and the state after those."""
        outputs, after = self.advance(tokens, state)
        return self.logits(outputs), after

    def advance(self, tokens: Tensor, state: RnnState) -> tuple[Tensor, RnnState]:
        """As `step`, but what the logits are made of, (B, K, D)."""
        decoded, after = self.decoder.advance(tokens, state, None)
        return decoded.outputs, after

    def _decoded(self, bitext: Bitext, forcing: float, rng: torch.Generator | None) -> Decoded:
        self._check_forcing(forcing)
        memory = self.encode(bitext.source)
        if forcing == 1 and not (self.config.attends and self.config.attention_feeds):
            return self.decoder.all_at_once(memory, bitext.target, rng)
        return self.decoder.step_by_step(memory, bitext.target, forcing, rng)

    def _context(self, states: Tensor, lengths: Sequence[int]) -> Tensor:
        """c of each sentence, (B, D)."""
        if self.config.context == "all":
            summary = pool(states, lengths, "mean")
        else:
            summary = pool(states, lengths, "last")
            if self.config.bidirectional:
                # The other direction has come from the right: its last state is that of the first word.
                ahead, back = summary.chunk(2, -1)[0], pool(states, lengths, "cls").chunk(2, -1)[1]
                summary = torch.cat([ahead, back], -1)
        return summary if self.transform is None else torch.tanh(self.transform(summary))

    def _check_forcing(self, forcing: float) -> None:
        if not 0 <= forcing <= 1:
            raise HeedfulError(f"teacher forcing of {forcing}", remedy="it is a probability, from 0 to 1")
        if forcing < 1 and not self.config.takes_words:
            raise HeedfulError(
                f"decoder {self.config.decoder} takes no words, so there is nothing to force",
                remedy="leave teacher forcing out, or choose decoder 3 or attention",
            )

    def _check_alignments(self, layer: int, head: int | None) -> None:
        if not self.config.attends:
            raise HeedfulError(
                f"decoder {self.config.decoder} has no attention to show", remedy="train one with attention"
            )
        if layer not in (-1, 1):
            raise HeedfulError(f"there is no attention in layer {layer}", remedy="this model has one, number 1 or -1")
        if head is not None and not 0 <= head < self.config.queries:
            raise HeedfulError(f"there is no head {head}", remedy=f"this model has heads 0 … {self.config.queries - 1}")


def initialise_seq2seq(model: Seq2Seq, seed: int) -> None:
    """Orthogonal recurrent matrices, Glorot's others, small embeddings, zero biases, but 1 for what an LSTM keeps."""
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 1 or name.endswith("first_state"):
                parameter.zero_()
            elif "embedding" in name:
                parameter.normal_(0.0, 0.1, generator=rng)
            elif "weight_hh" in name:
                for gate in torch.split(parameter, parameter.shape[1]):
                    nn.init.orthogonal_(gate, generator=rng)
            else:
                nn.init.xavier_uniform_(parameter, generator=rng)
            if model.config.cell == "lstm" and "bias_ih" in name:
                parameter.chunk(4)[1].fill_(1.0)  # input, forget, cell, output
