"""The recurrent decoders, three that know a context and one with attention; `heedful.models.seq2seq` tells them apart.

`advance` is the one written-out step. Decoding goes by it, and so does training where a step needs what the step
before has found; where not, `all_at_once` leaves all steps to one call of torch's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.models.rnn_state import RnnMemory, RnnState
from heedful.models.seq2seq_config import Seq2SeqConfig
from heedful.nn.dropout import Dropout
from heedful.nn.hard_attention import draw, hard, soft, straight_through
from heedful.nn.ragged import layout_of
from heedful.nn.recurrent import layers_of, longest_first, one_step, over_runs, packed_order, put_back
from heedful.nn.scores import KeyedMemory, MemoryQueries
from heedful.schema import Batch


@dataclass(frozen=True)
class Look:
    """Where words looked with M queries each, and how likely it was that they would: 0 where nothing was drawn."""

    context: Tensor  # (…, M·D)
    weights: Tensor  # (…, M, S)
    log_probability: Tensor  # (…)


@dataclass(frozen=True)
class Decoded:
    """What the decoder makes of words: outputs, and with attention where they looked."""

    outputs: Tensor  # (…, embedding_size)
    look: Look | None


class RnnDecoder(nn.Module):
    """Decoder 1, 2, 3 or attention, with the embeddings of the words it takes and says."""

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        self.config = config
        width, embedding = config.hidden_size, config.embedding_size
        found = config.queries * width if config.attends else 0
        # Where nothing comes in, torch's layers still want an input: a zero.
        inputs = {"1": 1, "2": width, "3": width + embedding, "attention": embedding + config.attention_feeds * found}
        self.embedding = nn.Embedding(config.target_vocab_size, embedding)
        self.recurrence = layers_of(config.cell, inputs[config.decoder], width, config.layers, config.dropout)
        learned = torch.zeros(self._states, config.layers, width)
        self.first_state = nn.Parameter(learned) if config.begins == "learned" else None
        self.queries = MemoryQueries(width, width, config.score, config.queries) if config.attends else None
        self.readout = nn.Linear(width + found, embedding)
        self.bias = nn.Parameter(torch.zeros(config.target_vocab_size))
        self.dropout = Dropout(config.dropout)

    def logits(self, outputs: Tensor) -> Tensor:
        """(…, embedding_size) -> (…, V)."""
        return F.linear(outputs, self.embedding.weight, self.bias)

    def start(self, memory: RnnMemory) -> RnnState:
        """The state before the first word, of one hypothesis a sentence."""
        return RnnState(memory, tuple(state.unsqueeze(2) for state in self._first(memory.context)))

    def advance(self, words: Tensor, state: RnnState, rng: torch.Generator | None) -> tuple[Decoded, RnnState]:
        """One step of K hypotheses of each of B sentences, whose words before are (B, K)."""
        memory, look = state.memory, None
        sentences = torch.arange(len(words), device=words.device).unsqueeze(1).expand_as(words)
        x = self._inputs(words, memory.context, sentences)
        if memory.states is not None and self.config.attention_feeds:
            look = self._look(state.hidden[0][-1], memory.states, rng)
            x = torch.cat([x, look.context], -1)
        top, hidden = one_step(self.recurrence, x.flatten(0, 1), [h.flatten(1, 2) for h in state.hidden])
        top = top.view(*words.shape, -1)
        if memory.states is not None and look is None:
            look = self._look(top, memory.states, rng)
        after = RnnState(memory, tuple(h.view(len(h), *words.shape, -1) for h in hidden))
        return Decoded(self._read(top, look), look), after

    def all_at_once(self, memory: RnnMemory, target: Batch, rng: torch.Generator | None) -> Decoded:
        """With the right words, and if nothing that is looked at comes in, all steps are one call. Flat rows (R, …)."""
        layout = layout_of(target.lengths, target.ids.device)
        count = torch.tensor(target.lengths, device=target.ids.device)
        sentences = torch.arange(len(count), device=count.device).repeat_interleave(count)
        x = self._inputs(target.ids, memory.context, sentences)
        states = over_runs(self.recurrence, x, target.lengths, self._first(memory.context))
        if memory.states is None:
            return Decoded(self._read(states, None), None)
        block = self._look(layout.pad(states), memory.states, rng)
        look = Look(*(layout.unpad(part) for part in (block.context, block.weights, block.log_probability)))
        return Decoded(self._read(states, look), look)

    def step_by_step(self, memory: RnnMemory, target: Batch, forcing: float, rng: torch.Generator | None) -> Decoded:
        """The same a step at a time, each for one word of every sentence that has one left. Flat rows (R, …).

        The longest sentences come first, so that those which go on are always a block. A step is given the right word
        with probability `forcing`, else the one said the step before; the first step has the start symbol.
        """
        device = target.ids.device
        order, sizes = packed_order(target.lengths)
        steps = torch.split(order.to(device), sizes.tolist())
        forced = torch.split(_chances(len(order), rng).to(device) < forcing, sizes.tolist())
        state = self.start(memory).keep(longest_first(target.lengths).to(device))
        decoded: list[Decoded] = []
        for rows, sure in zip(steps, forced, strict=True):
            if len(rows) < state.sentences:
                state = state.first(len(rows))
            words = target.ids[rows]
            if decoded:
                words = self._words(words, sure, decoded[-1].outputs[: len(rows), 0])
            step, state = self.advance(words.unsqueeze(1), state, rng)
            decoded.append(step)
        return _together(decoded, order.to(device))

    @property
    def _states(self) -> int:
        """How many states a layer carries on."""
        return 2 if self.config.cell == "lstm" else 1

    def _first(self, context: Tensor) -> tuple[Tensor, ...]:
        """The state before the first word, (L, B, D) each; a given one is c in every layer."""
        shape = (self.config.layers, *context.shape)
        if self.config.begins == "given":
            return (context.expand(shape),) * self._states
        if self.first_state is None:
            return (context.new_zeros(shape),) * self._states
        return tuple(state.unsqueeze(1).expand(shape) for state in self.first_state)

    def _inputs(self, words: Tensor, context: Tensor, sentences: Tensor) -> Tensor:
        """What comes in at each of the steps (…): the words before, and the contexts of their sentences."""
        if self.config.decoder == "1":
            return context.new_zeros(*words.shape, 1)
        if self.config.decoder == "2":
            return F.embedding(sentences, context)
        embedded: Tensor = self.dropout(self.embedding(words))
        if self.config.decoder == "3":
            return torch.cat([F.embedding(sentences, context), embedded], -1)
        return embedded

    def _look(self, states: Tensor, memory: KeyedMemory, rng: torch.Generator | None) -> Look:
        """Ask the memory with states (B, T, D)."""
        assert self.queries is not None
        scores = self.queries.scores(states, memory)  # (B, M, T, S)
        log_probability = scores.new_zeros(states.shape[:2])
        if self.config.attention == "soft":
            weights = soft(scores)
        elif not self.training:
            weights = hard(scores)
        elif self.config.hard_gradient == "straight-through":
            weights = straight_through(scores, rng)
        else:
            drawn = draw(scores, rng)
            weights, log_probability = drawn.weights, drawn.log_probability.sum(1)
        return Look(self.queries.mix(weights, memory), weights.transpose(1, 2), log_probability)

    def _read(self, states: Tensor, look: Look | None) -> Tensor:
        """tanh(W [h'; c_t]), (…, embedding_size)."""
        together = states if look is None else torch.cat([states, look.context], -1)
        return self.dropout(torch.tanh(self.readout(together)))  # type: ignore[no-any-return]

    def _words(self, given: Tensor, sure: Tensor, before: Tensor) -> Tensor:
        """The right words where that is `sure`, else what the outputs of the step before say, (b,)."""
        own = ~sure
        if not own.any():
            return given
        with torch.no_grad():
            said = self.logits(before[own]).argmax(-1)
        return given.masked_scatter(own, said)


def _chances(count: int, rng: torch.Generator | None) -> Tensor:
    return torch.rand(count, generator=rng, device=None if rng is None else rng.device)


def _together(steps: Sequence[Decoded], order: Tensor) -> Decoded:
    """Steps of one word a sentence as flat rows; `order` says which rows the steps have."""

    def flat(parts: Sequence[Tensor]) -> Tensor:
        return put_back(torch.cat([part[:, 0] for part in parts]), order)

    outputs = flat([step.outputs for step in steps])
    looks = [step.look for step in steps if step.look is not None]
    if not looks:
        return Decoded(outputs, None)
    parts = (
        [look.context for look in looks],
        [look.weights for look in looks],
        [look.log_probability for look in looks],
    )
    return Decoded(outputs, Look(*map(flat, parts)))
