"""Encoders and heads over padded texts, as other engines want them: (B, T) ids and a mask instead of flat tokens.

A padded batch is a flat one too, a single group of B sequences of T tokens, whose attention is told which of them are
real. So every encoder is exported by the same code, whatever it is made of.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from heedful.errors import HeedfulError
from heedful.models.encoder import Encoder
from heedful.models.heads import Head, SequenceClassifier, SpanFinder, Tagger
from heedful.nn.padded_lstm import over_block
from heedful.nn.pooling import combine, compared
from heedful.schema import Batch, Group, Selection

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
WORDS = "word_mask"  # 1 at the first piece of each word: what a tagger with a BiLSTM is asked for besides
# The outputs' names, which are those of Hugging Face's and sentence-transformers' own exports.
STATES, VECTORS, LOGITS = "last_hidden_state", "sentence_embedding", "logits"
CRF = "crf"  # of a tagger that has one: `Crf.table`


def padded_batch(ids: Tensor, mask: Tensor, segments: Tensor) -> Batch:
    """Three tensors (B, T), the mask 1 where a token is real, as one group of a flat batch."""
    count, length = ids.shape
    positions = torch.arange(length, device=ids.device).expand(count, length)
    group = Group(0, count, length, mask.bool()[:, None, None, :])
    return Batch(ids.reshape(-1), segments.reshape(-1), positions.reshape(-1), (), (group,))


def padded_pool(states: Tensor, mask: Tensor, how: str) -> Tensor:
    """Pool (B, T, D) over the real tokens of each sequence: (B, D), or (B, 2D) for mean-max."""
    if how == "mean-max":
        return torch.cat([padded_pool(states, mask, "mean"), padded_pool(states, mask, "max")], dim=-1)
    if how == "cls":
        return states[:, 0]
    if how == "last":
        return states[torch.arange(states.shape[0], device=states.device), mask.sum(1) - 1]
    real = mask[:, :, None].to(states.dtype)
    if how == "max":
        return torch.where(real > 0, states, torch.full_like(states, -torch.inf)).amax(1)
    if how == "weighted-mean":
        real = real * real.cumsum(1)
    return (states * real).sum(1) / real.sum(1).clamp(min=1)


def over_words(layer: nn.LSTM, states: Tensor, words: Tensor) -> Tensor:
    """A BiLSTM over the words of each text, (B, T, D) and the mask (B, T) -> (B, T, its width).

        words   0 1 0 1 0   ->   read 1 3   ->   said 0 0 0 1 1

    Every token gets what is said of the word that it belongs to, those before the first word that of the first.
    """
    length = words.shape[1]  # len(places) would be a fixed number in what is written
    places = torch.arange(length, device=words.device)
    words_first = torch.where(words.bool(), places, places + length).argsort(1)
    said = over_block(layer, _at(states, words_first), words.sum(1))
    return _at(said, (words.cumsum(1) - 1).clamp(min=0))


def _at(block: Tensor, places: Tensor) -> Tensor:
    """Of each sequence of (B, T, D) the rows at these places, (B, T)."""
    return block.gather(1, places[:, :, None].expand(-1, -1, block.shape[-1]))


class PaddedEncoder(nn.Module):
    """The states of the last layer, and a vector of each text."""

    inputs = INPUTS
    outputs = (STATES, VECTORS)

    def __init__(self, encoder: Encoder, pooling: str, normalize: bool, dense: nn.Module | None = None) -> None:
        """`dense` is what stands between the pooling and the length of a vector."""
        super().__init__()
        self.encoder, self.pooling, self.normalize = encoder, pooling, normalize
        self.dense = dense or nn.Identity()

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> tuple[Tensor, Tensor]:
        """(B, T) each -> (B, T, D) and (B, D)."""
        states = self.encoder(padded_batch(input_ids, attention_mask, token_type_ids)).last
        states = states.view(*input_ids.shape, -1)
        vectors = self.dense(padded_pool(states, attention_mask, self.pooling))
        return states, nn.functional.normalize(vectors, dim=-1) if self.normalize else vectors


class PaddedHead(nn.Module):
    """What a head says of each text, (B, K), or of each token, (B, T, K), and the states of the last layer.

    The logits of a tagger with a CRF are its emissions, and its table comes with them: who asks looks for the path.
    """

    def __init__(self, model: Head) -> None:
        super().__init__()
        if not isinstance(model, SequenceClassifier | SpanFinder | Tagger):
            raise HeedfulError("a task of one's own has no known way to ONNX", remedy="use a built-in task")
        self.model = model
        reads_words = isinstance(model, Tagger) and model.lstm is not None
        self.inputs = (*INPUTS, WORDS) if reads_words else INPUTS
        self.crf = model.crf if isinstance(model, Tagger) else None
        self.outputs = (LOGITS, STATES) if self.crf is None else (LOGITS, STATES, CRF)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor, word_mask: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """(B, T) each -> logits, and (B, T, D); of a CRF its table."""
        encoder, layers = self.model.encoder, self.model.features or (-1,)
        batch = padded_batch(input_ids, attention_mask, token_type_ids)
        hidden = encoder(batch, hidden=(*layers, -1)).hidden
        last = hidden[encoder.layer_count].view(*input_ids.shape, -1)
        how = getattr(self.model, "combine", "concat")
        states = combine([hidden[encoder.layer_number(layer)] for layer in layers], how)
        if not isinstance(self.model, SequenceClassifier):
            said = self._said_of_tokens(batch, states, word_mask).view(*input_ids.shape, -1)
            return (said, last) if self.crf is None else (said, last, self.crf.table())
        block = states.view(*input_ids.shape, -1)
        row = "last" if encoder.config.summary == "last" else "cls"
        if self.model.pooling == "compare":
            sides = (attention_mask * (token_type_ids == side) for side in (0, 1))
            return self._said_of(batch, compared(*(padded_pool(block, side, "mean") for side in sides))), last
        own = row if self.model.features else encoder.summary_pooling
        pooling = own if self.model.pooling == "cls" else self.model.pooling
        return self._said_of(batch, padded_pool(block, attention_mask, pooling)), last

    def _said_of_tokens(self, batch: Batch, states: Tensor, words: Tensor | None) -> Tensor:
        model = self.model
        if not isinstance(model, Tagger) or model.lstm is None:
            return self._said_of(batch, states)
        assert words is not None
        read = model.read(_all_rows(batch, states)).view(*words.shape, -1)
        return model.classifier(over_words(model.lstm, read, words))  # type: ignore[no-any-return]

    def _said_of(self, batch: Batch, states: Tensor) -> Tensor:
        said: Tensor = self.model(_all_rows(batch, states))
        return said


def _all_rows(batch: Batch, states: Tensor) -> Selection:
    """Every row of these states, which are known."""
    return Selection(batch, torch.arange(states.shape[0], device=states.device), (), states)
